"""The entry of INSTALLED_APPS: it finds the jobs of a project and starts nothing."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class EverytickConfig(AppConfig):  # type: ignore[misc]
    """Imports `jobs.py` of every installed app, once all models are loaded."""

    name = "everytick.django"
    label = "everytick"
    verbose_name = "everytick"

    def ready(self) -> None:
        """Let the project's jobs be defined. Every command comes here, `migrate` and `test` too: no node is started."""
        autodiscover_modules("jobs")
