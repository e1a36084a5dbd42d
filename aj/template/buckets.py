"""The section `storage_buckets` of a template, and the options of the command line that win over it.

storage_buckets:
  input:      {bucket: data, credentials: work}
  output:     {bucket: results}
  checkpoint: {bucket: models, region: westeurope}
  checkpoint_keep: 3
  require_output: true
"""

from __future__ import annotations

from dataclasses import replace

from aj.model.bucket import KEEP, Buckets, Purpose, Wanted
from aj.template.reader import Reader

MOST_KEPT = 1000
KEYS = ("bucket", "credentials", "region")


def read(config: Reader) -> Buckets | None:
    """Read the section; None without one. Faults are noted in the reader."""
    section = config.section("storage_buckets")
    if not section.node.entries:
        return None
    section.unknown((*(purpose.value for purpose in Purpose), "checkpoint_keep", "require_output"), is_error=True)
    keep = section.whole("checkpoint_keep", 1, MOST_KEPT)
    return Buckets(
        input=_wanted(section, Purpose.INPUT),
        output=_wanted(section, Purpose.OUTPUT),
        checkpoint=_wanted(section, Purpose.CHECKPOINT),
        checkpoint_keep=KEEP if keep is None else keep,
        require_output=section.flag("require_output") or False,
    )


def _wanted(section: Reader, purpose: Purpose) -> Wanted | None:
    one = section.section(purpose.value)
    if not one.node.entries:
        return None
    one.unknown(KEYS, is_error=True)
    return Wanted(one.text("bucket"), one.text("credentials"), one.text("region"))


def merged(template: Buckets | None, asked: Buckets | None) -> Buckets | None:
    """Return what the template says where the command line says nothing."""
    if template is None or asked is None:
        return asked or template
    return replace(
        template,
        input=_over(template.input, asked.input),
        output=_over(template.output, asked.output),
        checkpoint=_over(template.checkpoint, asked.checkpoint),
        checkpoint_keep=template.checkpoint_keep if asked.checkpoint_keep == KEEP else asked.checkpoint_keep,
        require_output=template.require_output or asked.require_output,
    )


def _over(below: Wanted | None, above: Wanted | None) -> Wanted | None:
    if below is None or above is None:
        return above or below
    return Wanted(above.bucket or below.bucket, above.credential or below.credential, above.region or below.region)
