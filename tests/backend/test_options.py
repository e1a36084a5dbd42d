"""What each service reads of a template: values, defaults, and what it refuses, without any network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from aj.backend import registry
from aj.backend.aml import options as aml
from aj.backend.local import options as local
from aj.backend.sing import options as sing
from aj.backend.volcano import options as volcano
from aj.base.errors import TemplateError
from aj.model.json import Json
from aj.template import issue, tree
from aj.template.issue import Issue
from aj.template.sections import Mount
from tests.template.kit import EXAMPLES, ID, LOCAL, VOLCANO, Request, built, errors, issues, section, spot

Plain = dict[str, Json]


def config(service: str, *, target: Plain | None = None, job: Plain | None = None, **more: Json) -> Plain:
    """A config that is valid for the service, with something added or changed."""
    base: Plain = {"service": service}
    if service == "aml":
        base["name"] = "gpu"
    return {
        "target": {**base, **(target or {})},
        "jobs": [{"sku": "G8", **(job or {})}],
        **({} if service == "local" else {"environment": {"image": "train:1"}}),
        **more,
    }


def refused(service: str, given: Plain) -> list[str]:
    with pytest.raises(TemplateError) as caught:
        registry.options(service)(tree.section_of(given))
    return [found.message for found in issue.of_error(caught.value) if found.is_error]


def warned(found: object) -> list[str]:
    facts = cast(local.Options, found).facts
    return [one.message for one in facts.warnings]


# this machine


def test_a_job_of_this_machine_says_what_it_takes() -> None:
    found = local.parse(section("{target: {service: local, cpus: 1.5, memory: 4Gi, gpus: 2}, jobs: [{}]}"))
    assert (found.cpus, found.memory_bytes, found.gpus) == (1.5, 4 * 2**30, 2)
    assert found.facts.sku_processes == 2
    assert found.facts.runs_here
    bare = local.parse(section("{target: {service: local}, jobs: [{}]}"))
    assert (bare.cpus, bare.memory_bytes, bare.gpus, bare.facts.sku_processes) == (None, None, None, 0)


@pytest.mark.parametrize(("cpus", "due"), [("250m", 0.25), ("2", 2), ('"0.5"', 0.5)])
def test_cpus_are_a_number(cpus: str, due: float) -> None:
    assert local.parse(section(f"{{target: {{service: local, cpus: {cpus}}}}}")).cpus == due


@pytest.mark.rule("SB-04")
def test_an_image_of_this_machine_is_read_as_everywhere_and_the_machine_itself_is_none(tmp_path: Path) -> None:
    assert [spot(one) for one in errors(tmp_path, LOCAL + "  environment:\n    image: https://x/y\n")] == [(7, 12)]
    found = local.parse(section("{target: {service: local}, environment: {image: 'r.example/train:1'}}"))
    assert (found.facts.image, found.facts.runs_here) == ("r.example/train:1", False)
    for words in ("{}", "{image: !unset }", "{image: local/host}"):
        plain = local.parse(section(f"{{target: {{service: local}}, environment: {words}}}"))
        assert plain.facts.runs_here, "nothing of the shell is withheld from a job of the machine itself"


def test_shared_memory_counts_against_the_memory_of_a_job() -> None:
    words = "{target: {service: local, memory: 1Gi}, jobs: [{submit_args: {container_args: {shm_size: %s}}}]}"
    assert local.parse(section(words % "512m")).shm_bytes == 512 << 20
    with pytest.raises(TemplateError, match="shm_size"):
        local.parse(section(words % "2g"))


def test_what_nothing_here_acts_on_is_told() -> None:
    found = local.parse(section("{target: {service: local}, storage: {x: {}}}"))
    assert warned(found) == ["`storage` has no effect on `local`: nothing is mounted"]
    found = local.parse(section("{target: {service: local}, jobs: [{sku: G8, priority: High, name: x}]}"))
    assert warned(found) == ["`sku` has no effect on `local`", "`priority` has no effect on `local`"]


def test_options_of_an_accepted_job_are_read_from_its_own_config(tmp_path: Path) -> None:
    spec = built(tmp_path, LOCAL.replace("local}", "local, cpus: 2, memory: 1Gi}")).spec
    assert local.of(spec) == local.parse(section("{target: {service: local, cpus: 2, memory: 1Gi}}"))


def test_a_shell_lends_what_programs_need_and_no_secret() -> None:
    env = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "CUDA_HOME": "/c",
        "API_TOKEN": "s",
        "EXTRA": "1",
        "PATHX": "no",
        "https_proxy": "p",
    }
    assert local.lent(env, ["EXTRA"]) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "CUDA_HOME": "/c",
        "EXTRA": "1",
        "https_proxy": "p",
    }


# what the services share


@pytest.mark.rule("C-131")
@pytest.mark.parametrize("service", ["aml", "sing", "volcano", "amlt"])
def test_image_and_sku_are_needed_off_this_machine(service: str) -> None:
    given = config(service)
    del given["environment"]
    given["jobs"] = [{"name": "x"}]
    assert sorted(refused(service, given)) == ["`environment.image` is missing", "`jobs[0].sku` is missing"]


@pytest.mark.rule("C-132", "A-090")
@pytest.mark.parametrize(
    ("image", "fits"),
    [
        ("train", True),
        ("train:1.0_x", True),
        ("registry.example:5000/a/b-c__d.e:tag", True),
        ("mcr.example.com/x@sha256:" + "0" * 64, True),
        ("localhost/x", True),
        ("https://registry.example/x", False),
        ("Train", False),
        ("a b", False),
        ("x:", False),
        ("", False),
        ("x@sha256:12", False),
        ("/x", False),
    ],
)
def test_an_image_follows_the_grammar(image: str, fits: bool) -> None:
    given = config("aml", environment={"image": image})
    assert (aml.parse(tree.section_of(given)).facts.image == image) if fits else refused("aml", given)


@pytest.mark.rule("A-090", "C-197")
def test_a_registry_stands_before_the_image_of_native_services() -> None:
    given = config("aml", environment={"image": "a/b:1", "registry": "registry.example"})
    assert aml.parse(tree.section_of(given)).facts.image == "registry.example/a/b:1"
    twice = config("aml", environment={"image": "other.example/b", "registry": "registry.example"})
    assert refused("aml", twice) == ["the image `other.example/b` names a registry already"]
    assert refused("aml", config("aml", environment={"image": "b", "registry": "https://registry.example"}))
    found = volcano.parse(
        tree.section_of(config("volcano", environment={"image": "b", "registry": "registry.example"}))
    )
    assert found.facts.image == "b"
    assert "Volcano uses `environment.image` as written: `registry` has no effect" in warned(found)


MOUNT = {"storage_account_name": "account1", "container_name": "data"}


@pytest.mark.rule("A-100", "C-132", "C-133")
def test_storage_is_a_container_and_a_folder() -> None:
    storage: Plain = {"shared": {**MOUNT}, "ro": {**MOUNT, "mount_dir": "/data/./x/", "mode": "RO"}}
    found = aml.parse(tree.section_of(config("aml", storage=storage)))
    assert found.mounts == (
        Mount("shared", "account1", "data", "/mnt/shared"),
        Mount("ro", "account1", "data", "/data/x", True),
    )


@pytest.mark.rule("A-100", "C-132")
@pytest.mark.parametrize(
    ("storage", "says"),
    [
        ({"x": {}}, "`storage.x.storage_account_name` is missing"),
        ({"1x": MOUNT}, "`1x` cannot name a storage"),
        ({"aj_bootstrap": MOUNT}, "`aj_bootstrap` cannot name a storage"),
        ({"x": {**MOUNT, "storage_account_name": "No"}}, "which is no storage account"),
        ({"x": {**MOUNT, "container_name": "a--b"}}, "which is no container"),
        ({"x": {**MOUNT, "mount_dir": "relative"}}, "an absolute folder"),
        ({"x": {**MOUNT, "mount_dir": "/"}}, "an absolute folder"),
        ({"x": {**MOUNT, "mount_dir": "/a/../b"}}, "an absolute folder"),
        ({"x": {**MOUNT, "mount_dir": "//a"}}, "an absolute folder"),
        (
            {"x": MOUNT, "y": {**MOUNT, "mount_dir": "/mnt/x/inner"}},
            "`storage.y.mount_dir` and storage `x` lie in one another",
        ),
        ({"x": MOUNT, "y": {**MOUNT, "mount_dir": "/mnt"}}, "`storage.y.mount_dir` and storage `x` lie in one another"),
        ({"x": {**MOUNT, "mode": "w"}}, "it is one of rw, ro"),
    ],
)
def test_storage_that_cannot_be_mounted_is_refused(storage: Plain, says: str) -> None:
    assert any(says in found for found in refused("aml", config("aml", storage=storage)))


def arguments(**values: Json) -> Plain:
    return {"submit_args": {"container_args": values}}


@pytest.mark.rule("A-123", "V-015", "C-080")
@pytest.mark.parametrize("size", ["64g", "64G", "64Gi", "64GiB", str(64 * 2**30)])
def test_shared_memory_in_any_spelling_is_one_number(size: str) -> None:
    assert aml.parse(tree.section_of(config("aml", job=arguments(shm_size=size)))).shm_bytes == 64 * 2**30


@pytest.mark.rule("A-123", "C-132")
@pytest.mark.parametrize("size", ["64GB", "x", "0", "-1g", "1.5g", ""])
def test_other_sizes_of_shared_memory_are_refused(size: str) -> None:
    assert "which is no size" in refused("aml", config("aml", job=arguments(shm_size=size)))[0]


@pytest.mark.rule("A-121")
def test_tags_are_names_with_values() -> None:
    found = aml.parse(tree.section_of(config("aml", job={"tags": ["team:a:b", "solo", 5, " x : y "]})))
    assert found.tags == {"team": "a:b", "solo": "", "5": "", "x": "y"}
    twice = aml.parse(tree.section_of(config("aml", job={"tags": ["a:1", "b", "a:2", "b"]})))
    assert twice.tags == {"a": "2", "b": ""}
    assert warned(twice) == ["the tag `a` is `1`, `2`: the last holds"]


@pytest.mark.rule("C-175", "A-114")
def test_ssh_files_travel_by_name_and_private_keys_by_a_second_word() -> None:
    found = aml.parse(tree.section_of(config("aml", code={"ssh": ["known_hosts", "id_rsa.pub"]})))
    assert (found.ssh_files, warned(found)) == (("known_hosts", "id_rsa.pub"), [])
    assert aml.parse(tree.section_of(config("aml"))).ssh_files == ()
    assert refused("sing", config("sing", code={"ssh": ["id_rsa", "../x"]})) == [
        "`id_rsa` is a private key",
        "`../x` is no file of ~/.ssh",
    ]
    both = sing.parse(tree.section_of(config("sing", code={"ssh": ["id_rsa"], "ssh_private_keys": True})))
    assert warned(both) == ["the private key `id_rsa` will stay readable where the code is kept"]


# Azure


@pytest.mark.rule("C-131", "C-133", "A-121")
def test_aml_reads_its_target_with_defaults() -> None:
    found = aml.parse(
        tree.section_of(config("aml", target={"workspace_name": "ws"}, job={"timeout": "2h", "identity": "USER"}))
    )
    assert (found.compute, found.workspace_name, found.subscription_id) == ("gpu", "ws", None)
    assert (found.identity, found.timeout_s) == ("user", 7200)
    assert aml.parse(tree.section_of(config("aml"))).identity == "managed"
    given = config("aml")
    given["target"] = {"service": "aml"}
    assert refused("aml", given) == ["`target.name` is missing"]
    assert refused("aml", config("aml", target={"name": ""})) == ["`target.name` is empty"]
    assert refused("aml", config("aml", job={"identity": "nobody"})) == [
        "`jobs[0].identity` is `nobody`; it is one of managed, user, none"
    ]


@pytest.mark.rule("A-057", "V-021")
def test_words_of_another_service_are_told() -> None:
    job: Plain = {"sla_tier": "basic", "priority": "low", "identity": "managed"}
    assert warned(aml.parse(tree.section_of(config("aml", job=job)))) == [
        "`sla_tier` has no effect on `aml`",
        "`priority` has no effect on `aml`",
    ]
    told = warned(volcano.parse(tree.section_of(config("volcano", job=job))))
    assert [one for one in told if "no effect" in one] == [
        "`identity` has no effect on `volcano`",
        "`sla_tier` has no effect on `volcano`",
        "`priority` has no effect on `volcano`",
    ]


@pytest.mark.rule("C-132", "C-133", "C-322", "A-073")
def test_sing_reads_tier_and_priority_in_any_case() -> None:
    found = sing.parse(
        tree.section_of(config("sing", target={"name": ""}, job={"sla_tier": "standard", "priority": "LOW"}))
    )
    assert (found.sla_tier, found.priority, found.cluster) == ("Standard", "Low", None)
    bare = sing.parse(tree.section_of(config("sing")))
    assert (bare.sla_tier, bare.priority) == ("Premium", "High")
    assert refused("sing", config("sing", job={"sla_tier": "Gold", "priority": "hihg"})) == [
        "`jobs[0].sla_tier` is `Gold`; it is one of Premium, Standard, Basic",
        "`jobs[0].priority` is `hihg`; it is one of High, Medium, Low",
    ]
    with pytest.raises(TemplateError) as caught:
        sing.parse(tree.section_of(config("sing", job={"priority": "hihg"})))
    assert caught.value.hint == "`High` is the nearest word"


@pytest.mark.rule("A-094")
def test_sing_knows_images_by_alias() -> None:
    found = sing.parse(tree.section_of(config("sing", environment={"image": "amlt-sing/acpt-2.0"})))
    assert (found.image_alias, found.facts.image) == ("acpt-2.0", "amlt-sing/acpt-2.0")
    assert sing.parse(tree.section_of(config("sing"))).image_alias is None
    assert refused("sing", config("sing", environment={"image": "amlt-sing/"})) == ["`amlt-sing/` names no image"]


@pytest.mark.rule("A-125")
def test_the_identity_of_a_sing_job_is_an_arm_id() -> None:
    arm_id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/u"
    job: Plain = {"submit_args": {"env": {sing.IDENTITY_VARIABLE: arm_id}}}
    assert sing.parse(tree.section_of(config("sing", job=job))).identity == arm_id
    job = {"submit_args": {"env": {sing.IDENTITY_VARIABLE: "u"}}}
    assert "which is no ARM id of a managed identity" in refused("sing", config("sing", job=job))[0]


@pytest.mark.rule("C-145", "C-142")
def test_what_each_service_makes_of_a_sku(tmp_path: Path) -> None:
    for service, is_error in [("aml", False), ("amlt", False), ("sing", True), ("volcano", True)]:
        name = ", name: x" if service == "aml" else ""
        text = f"base:\nconfig:\n  target: {{service: {service}, gpus_per_node: 1{name}}}\n"
        text += "  environment: {image: train:1}\n  jobs: [{sku: anything, instance_count: 1}]\n"
        found = [one for one in issues(tmp_path, text) if one.path == "jobs[0].sku"]
        assert [one.is_error for one in found] == [is_error]


def test_amlt_tells_that_it_chooses_files_by_itself() -> None:
    found = registry.options("amlt")(tree.section_of(config("amlt", code={"ignore": ["x"]})))
    assert warned(found) == ["amlt chooses files by its own rules: `code.ignore` has no effect"]


# Volcano


def volcano_of(text: str = VOLCANO, *, put: Mapping[str, str] | None = None) -> volcano.Options:
    for old, new in (put or {}).items():
        assert old in text
        text = text.replace(old, new)
    node = section(text).entries["config"]
    assert isinstance(node, tree.Section)
    return volcano.parse(node)


@pytest.mark.rule("C-133", "V-005", "V-006", "V-019", "V-060")
def test_volcano_reads_its_target_with_defaults() -> None:
    found = volcano_of()
    assert (found.where.context, found.where.namespace, found.where.queue) == (None, None, "default")
    assert found.pod.cpus is not None
    assert found.pod.memory is not None
    assert (found.pod.cpus.text, found.pod.memory.value) == ("96", 512 * 2**30)
    assert (found.pod.rdma, found.pod.gpu_resource, found.pod.spread, found.pod.launcher) == (
        None,
        "nvidia.com/gpu",
        "required",
        "none",
    )
    assert found.volume == volcano.Volume("pvc", "/mnt/pvc")
    assert found.upload == volcano.Upload(
        "kubectl-exec", upload_dir="aj-code", sas_expiry_days=1, pod_download_retries=5
    )
    assert found.ending == volcano.Ending(7 * 86400, None, 60, "fail", "fail", None, 3)
    assert found.facts.warnings == ()


@pytest.mark.rule("V-005", "V-060", "V-019", "V-123")
def test_volcano_tells_what_will_be_missing() -> None:
    bare = config("volcano")
    assert warned(volcano.parse(tree.section_of(bare))) == [
        "`target.cpus_per_node` is not set: no CPU is requested, the pod may get very little",
        "`target.memory` is not set: no memory is requested, the pod may get very little",
        "without AMLT_PERSISTENT_VOLUME_NAME and AMLT_PERSISTENT_VOLUME_MOUNT_DIR no code is sent",
    ]
    half = volcano_of(put={"AMLT_PERSISTENT_VOLUME_NAME: pvc, ": ""})
    assert half.volume is None
    assert warned(half)[0] == "AMLT_PERSISTENT_VOLUME_MOUNT_DIR without AMLT_PERSISTENT_VOLUME_NAME counts as none"


@pytest.mark.rule("V-005")
def test_container_arguments_stand_in_for_the_targets_sizes() -> None:
    found = volcano.parse(tree.section_of(config("volcano", job=arguments(cpus="500m", memory="1Gi"))))
    assert found.pod.cpus is not None
    assert found.pod.memory is not None
    assert (found.pod.cpus.value, found.pod.memory.text) == (0.5, "1Gi")


@pytest.mark.rule("V-016", "C-132")
def test_capabilities_are_tidied_and_all_is_refused() -> None:
    found = volcano_of(
        put={"submit_args:": "submit_args:\n      container_args: {capabilities: [cap_sys_admin, NET_RAW, SYS_ADMIN]}"}
    )
    assert found.pod.container.capabilities == ("SYS_ADMIN", "NET_RAW")
    assert refused("volcano", config("volcano", job=arguments(capabilities=["all"]))) == [
        "the capability `ALL` is refused"
    ]
    assert refused("volcano", config("volcano", job=arguments(capabilities=["x-y"]))) == ["`x-y` is no capability"]


@pytest.mark.rule("V-017", "C-132", "V-124")
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/dev/shm/x", "shared memory"),
        ("/dev", "shared memory"),
        ("/mnt/aj-work/x", "the work directory"),
        ("/mnt/aj-secrets", "the secrets"),
        ("/mnt/pvc/x", "the PVC directory /mnt/pvc"),
        ("/mnt/store", "the storage `store` at /mnt/store"),
        ("/", "an absolute folder"),
        ("relative", "an absolute folder"),
        ("//x", "an absolute folder"),
        ("/a/../b", "an absolute folder"),
    ],
)
def test_scratch_lies_apart_from_everything_else(path: str, says: str) -> None:
    job: Plain = {
        "submit_args": {
            "env": {"AMLT_PERSISTENT_VOLUME_NAME": "pvc", "AMLT_PERSISTENT_VOLUME_MOUNT_DIR": "/mnt/pvc"},
            "container_args": {"scratch_mount_path": path, "scratch_size": "200Gi"},
        }
    }
    found = refused("volcano", config("volcano", job=job, storage={"store": cast(Json, MOUNT)}))
    assert len(found) == 1
    assert says in found[0]


@pytest.mark.rule("V-017")
def test_scratch_has_a_path_and_perhaps_a_size() -> None:
    found = volcano.parse(tree.section_of(config("volcano", job=arguments(scratch_mount_path="/var/lib/containers/"))))
    assert found.pod.container.scratch is not None
    assert (found.pod.container.scratch.path, found.pod.container.scratch.size) == ("/var/lib/containers", None)
    assert refused("volcano", config("volcano", job=arguments(scratch_size="1Gi"))) == [
        "`scratch_size` needs a `scratch_mount_path`"
    ]
    assert (
        "a size above zero such as 512Gi, 500M or 1048576 is due"
        in refused("volcano", config("volcano", job=arguments(scratch_mount_path="/x", scratch_size="0Gi")))[0]
    )


@pytest.mark.rule("V-015")
def test_shared_memory_fits_into_the_memory() -> None:
    given = config("volcano", target={"memory": "32Gi"}, job=arguments(shm_size="64g"))
    assert refused("volcano", given) == ["`shm_size` is larger than the memory, 32Gi"]


@pytest.mark.rule("V-002", "V-003", "V-008", "V-009", "V-011", "V-012", "V-013", "V-014", "C-132")
@pytest.mark.parametrize(
    ("target", "says"),
    [
        ({"namespace": "Train_ing"}, "which is no namespace"),
        ({"queue": "-x"}, "which is no queue"),
        ({"priority_class": "A"}, "which is no name of a priority class"),
        ({"service_account": "a_b"}, "which is no name of a service account"),
        ({"image_pull_secrets": ["ok", "not ok"]}, "`not ok` cannot be the name of a secret"),
        ({"labels": {"a b": "x"}}, "`a b` cannot be the key of a label"),
        ({"labels": {"aj-id": "x"}}, "`aj-id` is reserved"),
        ({"annotations": {"volcano.sh/x": "x"}}, "`volcano.sh/x` is reserved"),
        ({"node_selector": {"ok": "not ok"}}, "`not ok` cannot be the value of a label"),
        ({"node_selector": {"x": "v" * 64}}, "cannot be the value of a label"),
        ({"spread": "wide"}, "it is one of required, preferred, none"),
        ({"launcher": "mpi"}, "it is one of none, processes"),
        ({"on_failure": "retry"}, "it is one of fail, restart"),
        ({"complete_with": "boss"}, "it is one of master, worker"),
        ({"ttl": "soon"}, "is not a duration"),
        ({"run_as": {"user": -1}}, "0 to 1000000000 is allowed"),
        ({"run_as": {"usr": 1}}, "unknown key `target.run_as.usr`"),
        ({"gpu_resource": "a b"}, "which is no name of a resource"),
        ({"memory": "64GB"}, "`target.memory` is `64GB`; a size above zero such as 512Gi"),
        ({"cpus_per_node": 0}, "`target.cpus_per_node` is `0`; a number of CPUs above zero such as 4"),
        ({"workdir_size": "x"}, "`x`; a size above zero such as"),
    ],
)
def test_words_that_the_cluster_would_refuse_are_refused_here(target: Plain, says: str) -> None:
    found = refused("volcano", config("volcano", target=target))
    assert len(found) == 1
    assert says in found[0]


@pytest.mark.rule("V-010", "V-011", "V-012", "V-009")
def test_what_a_target_may_say_besides() -> None:
    target: Plain = {
        "ttl": "never",
        "active_deadline": "1h",
        "grace": 0,
        "on_failure": "restart",
        "max_retry": 0,
        "complete_with": "worker",
        "run_as": {"user": 0, "fs_group": 7},
        "labels": {"team": "a", "x.example/n": 5},
        "annotations": {"note": "any text, really"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
    }
    found = volcano.parse(tree.section_of(config("volcano", target=target)))
    assert found.ending == volcano.Ending(None, 3600, 0, "restart", "fail", "worker", 0)
    assert found.pod.run_as == {"user": 0, "fs_group": 7}
    assert found.where.labels == {"team": "a", "x.example/n": "5"}
    assert found.pod.tolerations == ({"key": "k", "operator": "Exists"},)


@pytest.mark.rule("V-012", "V-037")
def test_storage_needs_root_and_says_so() -> None:
    storage: Plain = {"store": cast(Json, MOUNT)}
    assert "storage mounts make the pods privileged" in warned(
        volcano.parse(tree.section_of(config("volcano", storage=storage)))
    )
    given = config("volcano", target={"run_as": {"user": 1000}}, storage=storage)
    assert refused("volcano", given) == ["storage mounts need root: `run_as.user` cannot stand beside `storage`"]


def upload(**values: Json) -> Plain:
    return {"code_upload": values}


@pytest.mark.rule("V-070", "C-197", "C-133")
def test_code_may_travel_by_blob() -> None:
    blob: Plain = {"storage_account": "account1", "container": "code", "sas_expiry_days": 7, "auth": "identity"}
    found = volcano.parse(tree.section_of(config("volcano", _extra=upload(strategy="blob", blob=blob, keep="1d"))))
    assert found.upload == volcano.Upload("blob", "account1", "code", "aj-code", 7, 5, "identity", 86400)
    assert not [one for one in warned(found) if "no code" in one]


@pytest.mark.rule("V-070", "V-020", "C-197")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"strategy": "scp"}, "`_extra.code_upload.strategy` is `scp`; it is one of kubectl-exec, blob"),
        ({"stratgy": "blob"}, "unknown key `_extra.code_upload.stratgy`"),
        ({"strategy": "blob"}, "`_extra.code_upload.blob.storage_account` is missing"),
        ({"strategy": "blob", "blob": {"storage_account": "account1", "container": "c"}}, "which is no container"),
        ({"strategy": "blob", "blob": {"storage_account": "a", "container": "code"}}, "which is no storage account"),
        ({"strategy": "blob", "blob": {"upload_dir": "/x"}}, "which is no folder of a container"),
        ({"strategy": "blob", "blob": {"sas_expiry_days": 8}}, "1 to 7 is allowed"),
        ({"strategy": "blob", "blob": {"pod_download_retries": 21}}, "0 to 20 is allowed"),
        ({"strategy": "blob", "blob": {"retries": 1}}, "unknown key `_extra.code_upload.blob.retries`"),
        ({"strategy": "blob", "blob": {"auth": "key"}}, "it is one of sas, identity"),
    ],
)
def test_a_wrong_way_for_code_is_refused(given: Plain, says: str) -> None:
    assert any(says in found for found in refused("volcano", config("volcano", _extra={"code_upload": given})))


# Tasks


HETEROGENEOUS = "base:\n" + (EXAMPLES / "heterogeneous.yaml").read_text()


def tasks_with(tmp_path: Path, old: str, new: str) -> list[Issue]:
    assert old in HETEROGENEOUS
    return errors(tmp_path, HETEROGENEOUS.replace(old, new, 1))


@pytest.mark.rule("V-033", "V-050", "V-051", "V-055", "C-148")
def test_tasks_are_read_whole(tmp_path: Path) -> None:
    tasks = {task.name: task for task in built(tmp_path, HETEROGENEOUS).spec.tasks}
    assert list(tasks) == ["master", "a100-worker", "h100-worker"]
    first, worker = tasks["master"], tasks["a100-worker"]
    assert (first.replicas, first.cpus_per_node, first.memory, first.gpus_per_node, first.rdma) == (
        1,
        16,
        "64Gi",
        0,
        False,
    )
    assert (first.processes_per_node, first.lines) == (1, ("python coordinator.py",))
    assert (worker.image, worker.setup, worker.lines) == ("common-runtime:latest", ("python -m pip install -e .",), ())
    assert worker.node_selector == {"nvidia.com/gpu.product": "A100-SXM4-80GB"}
    assert (worker.rdma, worker.processes_per_node, worker.raw["replicas"]) == (True, 8, 2)


@pytest.mark.rule("V-051", "V-052", "V-055")
def test_a_task_may_have_an_environment_of_its_own(tmp_path: Path) -> None:
    own = "replicas: 1\n          environment: {image: own:1, setup: []}\n          command: run it"
    text = HETEROGENEOUS.replace("replicas: 1", own, 1).replace("          command: [python coordinator.py]\n", "")
    text = text.replace("rdma: false", "rdma: true\n          env: {A: 010, AJ_ID: x}")
    found = built(tmp_path, text)
    task = found.spec.tasks[0]
    assert (task.image, task.setup, task.lines, task.rdma, task.env) == ("own:1", (), ("run it",), True, {"A": "010"})
    assert "AJ_ID is set for the job: the value here is dropped" in [one.message for one in found.warnings]
    alone = text.replace("    image: common-runtime:latest\n", "")
    missing = [one.message for one in errors(tmp_path, alone)]
    assert missing == [
        f"`_extra.volcano.tasks.{name}.environment.image` is missing" for name in ("a100-worker", "h100-worker")
    ]


@pytest.mark.rule("C-323", "V-020", "V-050", "V-051", "V-052", "V-053")
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("master:", "leader:", "no Task is called `master`"),
        ("replicas: 1", "replicas: 2", "`master` has 2 replicas; exactly 1 is due"),
        (
            "replicas: 2",
            "replicas: '2'",
            "`_extra.volcano.tasks.a100-worker.replicas` is the text `2`; a whole number is due",
        ),
        (
            "replicas: 2",
            "replicas: true",
            "`_extra.volcano.tasks.a100-worker.replicas` is the flag `true`; a whole number is due",
        ),
        (
            "replicas: 2\n          cpus_per_node: 96",
            "cpus_per_node: 96",
            "`_extra.volcano.tasks.a100-worker.replicas` is missing",
        ),
        (
            "memory: 512Gi",
            "memory: 1GB",
            "`_extra.volcano.tasks.a100-worker.memory` is `1GB`; a size above zero such as 512Gi",
        ),
        ("rdma: true", "rdma: yes", "`_extra.volcano.tasks.a100-worker.rdma` is the text `yes`; true or false is due"),
        ("gpus_per_node: 8", "gpus_per_nod: 8", "unknown key `_extra.volcano.tasks.a100-worker.gpus_per_nod`"),
        ("a100-worker:", "A100:", "`A100` cannot name a Task"),
        ("[python coordinator.py]", "[]", "`_extra.volcano.tasks.master.command` is empty"),
        ("sku: heterogeneous", 'sku: "{nodes}xG8"', "beside Tasks `jobs[0].sku` is plain text"),
        ("sku: heterogeneous", "sku: {1: G1}", "beside Tasks `jobs[0].sku` is plain text"),
        (
            "sku: heterogeneous",
            "process_count_per_node: 2\n      sku: x",
            "`process_count_per_node` cannot stand beside Tasks",
        ),
        ("queue: default", "gpus_per_node: 8", "`target.gpus_per_node` cannot stand beside Tasks"),
        ("queue: default", "cpus_per_node: 8", "`target.cpus_per_node` cannot stand beside Tasks"),
        ("queue: default", "memory: 8Gi", "`target.memory` cannot stand beside Tasks"),
        ("queue: default", "rdma: true", "`target.rdma` cannot stand beside Tasks"),
        (
            "rdma: false",
            "rdma: false\n          env: {AMLT_PERSISTENT_VOLUME_NAME: x}",
            "AMLT_PERSISTENT_VOLUME_NAME is one for all Tasks",
        ),
        (
            "rdma: false",
            "rdma: false\n          container_args: {shm_siz: 1g}",
            "unknown key `_extra.volcano.tasks.master.container_args.shm_siz`",
        ),
        (
            "rdma: false",
            "rdma: false\n          container_args: {shm_size: 65g}",
            "`shm_size` is larger than the memory, 64Gi",
        ),
        (
            "rdma: false",
            "rdma: false\n          environment: {imge: x}",
            "unknown key `_extra.volcano.tasks.master.environment.imge`",
        ),
    ],
)
def test_each_fault_of_a_task_is_told_by_name(tmp_path: Path, old: str, new: str, says: str) -> None:
    found = tasks_with(tmp_path, old, new)
    assert says in " | ".join(one.message for one in found)
    assert all(spot(one)[0] > 1 for one in found)


@pytest.mark.rule("V-050", "C-323")
@pytest.mark.parametrize("tasks", ["null", "{}", "[x]", "text"])
def test_tasks_are_a_filled_mapping(tmp_path: Path, tasks: str) -> None:
    head = HETEROGENEOUS[: HETEROGENEOUS.index("      tasks:")]
    found = errors(tmp_path, f"{head}      tasks: {tasks}\n")
    assert len(found) == 1
    assert "a mapping from names to Tasks is due" in found[0].message


@pytest.mark.rule("C-302", "C-154", "V-122")
def test_a_task_whose_name_leaves_no_room_is_refused(tmp_path: Path) -> None:
    found = tasks_with(tmp_path, "a100-worker:", "w" * 45 + ":")
    assert [one.message for one in found] == [
        f"name too long: task {'w' * 45} leaves no room for a job name (9 of 63 characters)"
    ]
    assert tasks_with(tmp_path, "a100-worker:", "w" * 44 + ":") == []


@pytest.mark.rule("V-052")
def test_container_arguments_of_the_job_hold_below_those_of_a_task(tmp_path: Path) -> None:
    shared = (
        "sku: heterogeneous\n      submit_args: {container_args: {scratch_mount_path: /scratch, scratch_size: 1Gi}}"
    )
    assert tasks_with(tmp_path, "sku: heterogeneous", shared) == []
    text = HETEROGENEOUS.replace("sku: heterogeneous", shared)
    text = text.replace("rdma: false", "rdma: false\n          container_args: {scratch_mount_path: /dev/shm}")
    assert "shared memory" in errors(tmp_path, text)[0].message


def test_other_services_do_not_read_tasks(tmp_path: Path) -> None:
    text = LOCAL + "  _extra: {volcano: {tasks: {x: 1}}}\n"
    assert built(tmp_path, text, request=Request(ID, tmp_path, ("x",))).spec.tasks == ()


@pytest.mark.rule("V-020", "A-12C")
def test_all_faults_are_told_together() -> None:
    given = config(
        "volcano",
        target={"queue": "-", "spread": "x"},
        job=arguments(shm_size="x", capabilities=["ALL"]),
        storage={"x": {}},
    )
    assert len(refused("volcano", given)) == 6
