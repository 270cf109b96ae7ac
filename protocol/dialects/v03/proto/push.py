"""Push notification configs in the JSON of the 0.3 protobuf definition: resources with a name."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from protocol import model
from protocol.dialects.v03.push import PushNotificationConfig, write_config
from protocol.model import Wire


class TaskPushNotificationConfig(Wire, kw_only=True):
    """A config; its name is `tasks/{id}/pushNotificationConfigs/{id}`."""

    name: str
    push_notification_config: PushNotificationConfig


class ConfigPage(Wire, kw_only=True):
    """ListTaskPushNotificationConfigResponse."""

    configs: list[TaskPushNotificationConfig] | UnsetType = UNSET
    next_page_token: str = ""


def write_task_config(config: model.TaskPushNotificationConfig) -> TaskPushNotificationConfig:
    """The 0.3 config of a 1.0 one."""
    return TaskPushNotificationConfig(
        name=f"tasks/{config.task_id}/pushNotificationConfigs/{config.id}",
        push_notification_config=write_config(config),
    )


def write_task_configs(page: model.ListTaskPushNotificationConfigsResponse) -> ConfigPage:
    """The 0.3 page of a 1.0 one."""
    return ConfigPage(
        configs=[write_task_config(config) for config in page.configs] or UNSET,
        next_page_token=page.next_page_token,
    )
