"""What a template must say before it can be handed to amlt: an image and a SKU; the rest is amlt's to judge."""

from __future__ import annotations

from dataclasses import field

from aj.base.noun import dataclass
from aj.template import issue, sections
from aj.template.service import Facts, SkuRule
from aj.template.tree import Section


@dataclass(frozen=True)
class Options:
    """Nothing beyond what every service tells: amlt reads the template itself."""

    facts: Facts = field(default_factory=Facts)


def parse(config: Section) -> Options:
    """Read the options of this service. Raises TemplateError with every fault."""
    reader, job = sections.config(config)
    image = sections.needed_image(reader)
    sections.sku_needed(job)
    if reader.section("code").texts("ignore"):
        reader.section("code").warn("ignore", sections.AMLT_CHOOSES)
    issue.stop_at_errors(reader.issues)
    return Options(Facts(image=image, sku_rule=SkuRule.LOOSE, warnings=tuple(reader.issues)))
