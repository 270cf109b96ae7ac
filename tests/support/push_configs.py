"""The push config operations of a peer, in its binding (§3.1.7 to §3.1.10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a.types import a2a_pb2 as pb

from tests.support.grpc_peer import GrpcPeer
from tests.support.peers import JsonRpcPeer, Peer, RestPeer, in_path

_GRPC_REQUESTS = {
    "Create": pb.TaskPushNotificationConfig,
    "Get": pb.GetTaskPushNotificationConfigRequest,
    "List": pb.ListTaskPushNotificationConfigsRequest,
    "Delete": pb.DeleteTaskPushNotificationConfigRequest,
}
_REST_VERBS = {"Create": "POST", "Get": "GET", "List": "GET", "Delete": "DELETE"}


class PushConfigs:
    """One peer's."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def create(self, task_id: str, **config: Any) -> dict[str, Any]:
        """CreateTaskPushNotificationConfig."""
        return self._call("Create", task_id, config)

    def get(self, task_id: str, id: str) -> dict[str, Any]:
        """GetTaskPushNotificationConfig."""
        return self._call("Get", task_id, {"id": id})

    def list(self, task_id: str, **members: Any) -> dict[str, Any]:
        """ListTaskPushNotificationConfigs."""
        return {"configs": []} | self._call("List", task_id, members)

    def ids(self, task_id: str) -> set[str]:
        """The ids of a task's configs."""
        return {config["id"] for config in self.list(task_id)["configs"]}

    def delete(self, task_id: str, id: str) -> dict[str, Any]:
        """DeleteTaskPushNotificationConfig."""
        return self._call("Delete", task_id, {"id": id})

    def _call(self, verb: str, task_id: str, members: Mapping[str, Any]) -> dict[str, Any]:
        peer = self._peer
        method = f"{verb}TaskPushNotificationConfig{'s' if verb == 'List' else ''}"
        params = {"taskId": task_id, **members}
        if isinstance(peer, JsonRpcPeer):
            return peer.call(method, params)
        if isinstance(peer, GrpcPeer):
            return peer.call(method, peer.request(_GRPC_REQUESTS[verb], params))
        assert isinstance(peer, RestPeer)
        path = f"/tasks/{in_path(task_id)}/pushNotificationConfigs"
        if verb in ("Get", "Delete"):
            return peer.call(_REST_VERBS[verb], f"{path}/{in_path(members['id'])}")
        body, query = (members, None) if verb == "Create" else (None, members)
        return peer.call(_REST_VERBS[verb], path, body, query)
