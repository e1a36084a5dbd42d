"""Where a job of Singularity goes, live: its workspace, its cluster, its image's alias, its identity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from aj.azure import images, supply, workplace, workspaces
from aj.azure.arm import Session, Workspace
from aj.azure.chosen import Chosen
from aj.azure.fan import Gathered
from aj.azure.supply import Supply
from aj.azure.workplace import Places, Wish
from aj.azure.workspaces import Attached, Facts
from aj.backend.sing import match
from aj.backend.sing.match import Offer, Wanted
from aj.backend.sing.options import IDENTITY_VARIABLE, Options
from aj.base import text
from aj.base.errors import AjError, ConfigError, NotFound, Refused, UserError
from aj.model.quota import VirtualCluster

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


class Search:
    """The questions of one submission, each asked once. `tenant` is that which template or settings name."""

    def __init__(self, session: Session, options: Options, chosen: Chosen) -> None:
        self.session = session
        self.places = Places(session)
        self.tenant = options.tenant_id or chosen.tenant
        self.placeholder_image = chosen.placeholder_image
        self._options = options
        self._chosen = chosen

    @property
    def workspace(self) -> Workspace:
        """The workspace that holds the job, which may lie elsewhere than the cluster. Raises as `facts`."""
        return self.facts.at

    @cached_property
    def facts(self) -> Facts:
        """What that workspace says of itself.

        Raises ConfigError when neither template nor settings name one, NotFound, and as Places.named.
        """
        options = self._options
        exact = Wish(options.workspace_name, options.subscription_id, options.resource_group).workspace
        if exact is not None:
            try:
                return workspaces.get(self.session, exact)
            except NotFound:
                pass  # subscription and group are then those of the cluster alone
        return workspaces.get(self.session, self._named())

    def _named(self) -> Workspace:
        name, configured = self._options.workspace_name, self._chosen.workspace
        if name is None and configured.name is None:
            raise ConfigError("no workspace is named", hint=workplace.BOTH_WAYS, code="no-workspace")
        if name is None or (configured.name or "").lower() == name.lower():
            return self.places.named(configured)
        found = self.places.matching(Wish(name))
        # the coordinates of the template are the cluster's: they may decide, and need not fit
        near = Wish(name, self._options.subscription_id, self._options.resource_group)
        fitting = tuple(one for one in found if near.allows(one))
        return self.places.one_of(fitting or found, Wish(name))

    def client_id(self) -> str | None:
        """Return the client id of the identity that the job runs as; None when it runs as none of its own.

        Raises Refused when the workspace does not have that identity.
        """
        wanted = self._options.identity
        if wanted is None:
            return None
        attached = next((one for one in self.facts.identities if one.id.lower() == wanted.lower()), None)
        if attached is None:
            raise self._not_attached(wanted)
        return _client_id(attached)

    def _not_attached(self, wanted: str) -> Refused:
        listed = ", ".join(one.id for one in self.facts.identities) or "none"
        return Refused(
            f"the identity {wanted} is not attached to workspace {self.workspace} (attached: {listed})",
            hint=f"attach it there, or write one of those in {IDENTITY_VARIABLE}",
            code="identity-not-attached",
        )

    def check_alias(self) -> str | None:
        """Raise NotFound when nobody knows the image's alias; return a warning when that cannot be told."""
        alias = self._options.image_alias
        if alias is None:
            return None
        try:
            found = images.list_all(self.session, self.places.subscriptions())
        except AjError as error:
            return f"whether there is an image {alias} could not be checked: {error.message}"
        return _alias_warning(alias, found)

    def offer(self, wanted: Wanted) -> Offer:
        """Choose cluster, tier and machines. Raises as match.choose, and when a part in scope gave no answer."""
        found = self._supply()
        offer = match.choose(found.clusters, wanted, scope=self._filters)
        if found.failures:  # what could not be read might have been the better one
            Gathered((), found.failures).strictly("read every virtual cluster in scope")
        return offer

    def _supply(self) -> Supply:
        options = self._options
        found = supply.find(
            self.session,
            self.places.subscriptions(options.subscription_id),
            name=options.cluster,
            group=options.resource_group,
            gpu_sizes=self._chosen.gpu_sizes,
        )
        if options.cluster is not None:
            self._check_single(options.cluster, found.clusters)
        return found

    def _check_single(self, name: str, found: Sequence[VirtualCluster]) -> None:
        if len(found) > 1:
            listed = ", ".join(str(one) for one in found)
            decides = "subscription_id" if len({one.subscription for one in found}) == len(found) else "resource_group"
            raise UserError(
                f"{len(found)} virtual clusters are called {name}: {listed}",
                hint=f"set target.{decides}",
                code="several-clusters",
            )
        if not found:
            raise self._no_such_cluster(name)

    def _no_such_cluster(self, name: str) -> NotFound:
        options = self._options
        others = supply.names(
            self.session, self.places.subscriptions(self._options.subscription_id), group=options.resource_group
        )
        near = text.nearest_few(name, others)
        filters = f" (filters: {', '.join(self._filters)})" if self._filters else ""
        return NotFound(
            f"no virtual cluster is called {name}{filters}",
            hint=f"the nearest are {', '.join(f'`{one}`' for one in near)}" if near else "`aj quota list --full`",
            code="no-cluster",
        )

    @property
    def _filters(self) -> tuple[str, ...]:
        return Wish(None, self._options.subscription_id, self._options.resource_group).filters


def _client_id(attached: Attached) -> str:
    if attached.client_id is None or not _UUID.match(attached.client_id):
        raise Refused(f"the identity {attached.id} has no usable client id", code="identity-without-client")
    return attached.client_id


def _alias_warning(alias: str, found: Gathered[images.Image]) -> str | None:
    """Return a warning when some subscription did not answer and no other knows the alias. Raises NotFound."""
    names = [name for image in found.values for name in image.names]
    if alias in names:
        return None
    if found.failures:
        silent = "; ".join(f"{failure.part}: {failure.error.message}" for failure in found.failures)
        return f"whether there is an image {alias} could not be checked: {silent}"
    near = text.nearest_few(alias, names)
    hint = (
        f"the nearest are {', '.join(f'`{name}`' for name in near)}" if near else "`aj image list` shows what there is"
    )
    raise NotFound(f"Singularity has no image called {alias}", hint=hint, code="no-image")
