"""Form fields."""

from __future__ import annotations

from typing import Any

from django import forms


class TextListField(forms.CharField):
    """A list of texts, one a line. Takes the arguments of the form field that a JSONField asks for."""

    def __init__(self, *, encoder: Any = None, decoder: Any = None, **kwargs: Any) -> None:
        kwargs["help_text"] = f"{kwargs.get('help_text', '')} One a line.".strip()
        # Django asks for it where a default is a function; `has_changed` does without.
        kwargs["show_hidden_initial"] = False
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        """A list as lines; text that was typed stays as it was."""
        return "\n".join(str(item) for item in value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        """Lines as a list, without empty ones."""
        if isinstance(value, list):
            return value
        return [line.strip() for line in (super().to_python(value) or "").splitlines() if line.strip()]

    def validate(self, value: Any) -> None:
        """A required list needs an item; the rest is for the validators of the model."""
        if self.required and not value:
            raise forms.ValidationError(self.error_messages["required"], code="required")

    def run_validators(self, value: Any) -> None:
        """CharField's look at texts, of which each item is one."""
        for item in value:
            super().run_validators(item)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare lists, not lines."""
        return self.to_python(initial if initial is not None else "") != self.to_python(data)
