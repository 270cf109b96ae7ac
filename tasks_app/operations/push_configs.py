"""The push notification configs of a task (§3.1.7 to §3.1.10). They outlive the task's end."""

from __future__ import annotations

from dataclasses import dataclass

from django.core import signing

from protocol import codec
from protocol.errors import (
    InvalidParamsError,
    PushNotificationConfigNotFoundError,
    UnsupportedOperationError,
    Violation,
)
from protocol.model import ListTaskPushNotificationConfigsResponse
from protocol.requests import (
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
)
from tasks_app.operations.call import Call
from tasks_app.push import configs
from tasks_app.push.config import CONFIGS_MAX, StoredConfig, check_config, sealed

PAGE_SIZE = PAGE_SIZE_MAX = 100

_SALT = "a2a.ListTaskPushNotificationConfigs"
_TOO_MANY = f"The task has {CONFIGS_MAX} push notification configs already."


@dataclass(slots=True)
class ConfigPage:
    """A ListTaskPushNotificationConfigsResponse."""

    configs: list[StoredConfig]
    next_page_token: str

    def payload(self) -> bytes:
        """The response as JSON, without secrets."""
        shown = [config.shown() for config in self.configs]
        page = ListTaskPushNotificationConfigsResponse(configs=shown, next_page_token=self.next_page_token)
        return codec.encode(page)


async def create_push_config(call: Call, request: CreateTaskPushNotificationConfigRequest) -> StoredConfig:
    """Have the events of a task from now on posted to a webhook (§3.1.7).

    An id that the task has already gives that config a new address and new secrets; what it had not delivered goes
    there. Raises TaskNotFoundError, InvalidParamsError for a URL that may not be called, UnsupportedOperationError for
    a task with too many configs; then nothing was stored.
    """
    record = await call.find_task(request.task_id)
    await check_config(request, call.host.outbound, call.host.registry.signer)
    config = sealed(request, record.id, call.dialect, record.last_seq)
    if not await configs.save(call.host.store, config):
        raise UnsupportedOperationError(_TOO_MANY)
    call.host.doorbell.ring_for_push(record.id)
    return config


async def check_room(call: Call, config: StoredConfig) -> None:
    """Raises UnsupportedOperationError for a task with too many configs."""
    if not await configs.has_room(call.host.store, config.task_id, config.config_id):
        raise UnsupportedOperationError(_TOO_MANY)


async def get_push_config(call: Call, request: GetTaskPushNotificationConfigRequest) -> StoredConfig:
    """One config (§3.1.8); without an id, as 0.3 allows (0.3 §7.6), the first one of the task.

    Raises TaskNotFoundError, PushNotificationConfigNotFoundError.
    """
    record = await call.find_task(request.task_id)
    if request.id:
        config = await configs.find(call.host.store, record.id, request.id)
    else:
        config = next(iter(await configs.page(call.host.store, record.id, "", 1)), None)
    if config is None:
        raise PushNotificationConfigNotFoundError(record.id, request.id)
    return config


async def list_push_configs(call: Call, request: ListTaskPushNotificationConfigsRequest) -> ConfigPage:
    """The configs of a task by id (§3.1.9), up to 100 on a page.

    Raises TaskNotFoundError, InvalidParamsError for a page token that was not made for this task.
    """
    record = await call.find_task(request.task_id)
    size = min(request.page_size or PAGE_SIZE, PAGE_SIZE_MAX)
    after = _read_token(request) if request.page_token else ""
    found = await configs.page(call.host.store, record.id, after, size + 1)
    token = signing.dumps([record.id, found[size - 1].config_id], salt=_SALT) if len(found) > size else ""
    return ConfigPage(found[:size], token)


async def delete_push_config(call: Call, request: DeleteTaskPushNotificationConfigRequest) -> None:
    """Post nothing more for a config, also when it is gone already (§3.1.10). Raises TaskNotFoundError."""
    record = await call.find_task(request.task_id)
    await configs.delete(call.host.store, record.id, request.id)


def _read_token(request: ListTaskPushNotificationConfigsRequest) -> str:
    try:
        task_id, config_id = signing.loads(request.page_token, salt=_SALT)
    except signing.BadSignature:
        raise InvalidParamsError([Violation("pageToken", "is not a token of this server")]) from None
    if task_id != request.task_id:
        raise InvalidParamsError([Violation("pageToken", "was made for another query")])
    return str(config_id)
