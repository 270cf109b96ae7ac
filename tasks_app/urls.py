"""Addresses of the task pages and the catalog."""

from __future__ import annotations

from django.urls import path, register_converter

from tasks_app.pages import answering, catalog, files, queue_page, task_list, task_page, webhook_list, webhook_page


class PartOrigin:
    """`m<position>` of a message or `e<seq>` of an event."""

    regex = "[me][1-9][0-9]{0,8}"

    def to_python(self, value: str) -> str:
        """As it is."""
        return value

    def to_url(self, value: str) -> str:
        """As it is."""
        return value


register_converter(PartOrigin, "origin")

urlpatterns = [
    path("tasks/", task_list.task_list, name="tasks"),
    path("tasks/<slug:task_id>/", task_page.task_page, name="task"),
    path("tasks/<slug:task_id>/answer", answering.answer, name="task-answer"),
    path("tasks/<slug:task_id>/cancel", answering.cancel, name="task-cancel"),
    path("tasks/<slug:task_id>/raw", task_page.raw_task, name="task-raw"),
    path("tasks/<slug:task_id>/task.json", task_page.task_json, name="task-json"),
    path("tasks/<slug:task_id>/events/<int:seq>", task_page.raw_event, name="task-event"),
    path("tasks/<slug:task_id>/files/<origin:origin>/<int:index>", files.part_file, name="task-file"),
    path("webhooks/", webhook_list.webhook_list, name="webhooks"),
    path("webhooks/<slug:task_id>/", webhook_page.webhook_page, name="webhook"),
    path("webhooks/<slug:task_id>/act", webhook_page.act, name="webhook-act"),
    path("queue/", queue_page.queue_page, name="queue"),
    path("catalog/", catalog.agent_list, name="catalog"),
]
