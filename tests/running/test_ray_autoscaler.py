"""A study on a cluster that Ray's own autoscaler grows and shrinks, with Ray's fake provider of nodes.

`ray.cluster_utils.AutoscalingCluster` is Ray's way to start such a cluster. It can't be used: it begins with
`ray stop --force`, which ends every Ray on the machine, and it reads `fake_multi_node/example.yaml`, which Ray's wheels
leave out. So the head is started with the same settings here, and the provider is named by its class. The autoscaler
(version 2), its monitor process and its decisions are Ray's.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.ray_runs import NICENESS, check_every_step_is_counted_once, everything, run, wait_for_actors
from unseen.running.chunk import Event
from unseen.running.executors import ray as executor
from unseen.running.executors.ray import Ray

HEAD = "f" * 51 + "00000"
"""The fake provider takes this for the id of the head; its nodes have the ids that follow."""
PROVIDER = {
    "type": "external",
    "module": "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider",
    "use_node_id_as_ip": True,
    "disable_node_updaters": True,
    "disable_launch_config_check": True,
    "launch_multiple": True,
    "head_node_id": HEAD,
}
NOTHING_TO_SET_UP = (
    "setup_commands",
    "head_setup_commands",
    "worker_setup_commands",
    "initialization_commands",
    "head_start_ray_commands",
    "worker_start_ray_commands",
    "cluster_synced_files",
)
"""Lists that Ray reads from the file which its wheels leave out."""
ENVIRONMENT = {
    "RAY_FAKE_CLUSTER": "1",
    "RAY_enable_autoscaler_v2": "1",
    "AUTOSCALER_UPDATE_INTERVAL_S": "1",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # keep to loopback
    "RAY_USAGE_STATS_ENABLED": "0",
    **NICENESS,
}


def write_configuration(file: Path, address: str) -> None:
    """A head without a CPU, and up to two nodes with one CPU each, which are removed when idle for three seconds."""
    head = {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0}
    resources = {"CPU": 1, "object_store_memory": 100 * 1024**2}
    worker = {"resources": resources, "node_config": {}, "min_workers": 0, "max_workers": 2}
    configuration = {
        "cluster_name": "fake",
        "max_workers": 2,
        "provider": {**PROVIDER, "gcs_address": address},
        "available_node_types": {"ray.head.default": head, "worker": worker},
        "head_node_type": "ray.head.default",
        "upscaling_speed": 1.0,
        "idle_timeout_minutes": 0.05,
        "file_mounts": {},
        **{name: [] for name in NOTHING_TO_SET_UP},
    }
    file.write_text(json.dumps(configuration))


@pytest.fixture
def growing_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    ray = executor._imported()
    from ray._private.ray_constants import PROCESS_TYPE_MONITOR
    from ray.cluster_utils import Cluster

    monkeypatch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configuration = tmp_path / "autoscaler.json"
    write_configuration(configuration, f"127.0.0.1:{port}")
    head_names = ("RAY_OVERRIDE_NODE_ID_FOR_TESTING", "RAY_CLOUD_INSTANCE_ID")
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "include_dashboard": False,
            "gcs_server_port": port,
            "autoscaling_config": str(configuration),
            "env_vars": {**dict.fromkeys(head_names, HEAD), "RAY_NODE_TYPE_NAME": "ray.head.default"},
        },
    )
    import psutil  # Ray brings its own

    monitor = psutil.Process(cluster.head_node.all_processes[PROCESS_TYPE_MONITOR][0].process.pid)
    try:
        yield cluster
    finally:
        nodes = monitor.children(recursive=True)  # of a test that failed before they were removed
        ray.shutdown()
        cluster.shutdown()
        for process in nodes:
            if process.is_running():
                process.kill()


def test_a_cluster_grows_under_queued_demand_and_shrinks_without(
    growing_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a head that can do no work to two nodes, and back as soon as the actors have nothing to do."""
    import ray

    at_start: list[set[str]] = []
    used: set[str] = set()
    at_end: list[set[str]] = []
    listen, close = Ray.next, Ray.close

    def added_nodes() -> set[str]:
        return {node["NodeID"] for node in ray.nodes() if node["Alive"]} - {HEAD}

    def listen_and_watch(self: Ray, seconds: float) -> Event | None:
        if not at_start:
            at_start.append(added_nodes())
            wait_for_actors(self, count=2)
        used.update(actor.node for actor in self._actors if actor.work is not None)
        return listen(self, seconds)

    def close_when_shrunk(self: Ray) -> None:
        """All work is done; the connection is kept until the nodes are gone that stood idle."""
        monkeypatch.setattr(executor, "IDLE_SECONDS", 0.0)
        self._dismiss_idle_actors()
        end = time.monotonic() + 300
        while added_nodes() and time.monotonic() < end:
            time.sleep(0.2)
        at_end.append(added_nodes())
        close(self)

    monkeypatch.setattr(Ray, "next", listen_and_watch)
    monkeypatch.setattr(Ray, "close", close_when_shrunk)
    out = run(tmp_path / "ray", range(2), chunk_seconds=0.1, executor="ray", address=growing_cluster.address)
    assert at_start == [set()] and len(used) == 2 and at_end == [set()]
    assert HEAD not in used
    assert len(check_every_step_is_counted_once(out)) == 2
    assert everything(out) == everything(run(tmp_path / "inline", range(2)))
