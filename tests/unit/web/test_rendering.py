"""Templates are compiled before the first reader comes."""

from everytick.web.rendering import compile_templates, environment


async def test_every_template_is_compiled_ahead() -> None:
    """The first reader of the page of a job waited 40 ms for it."""
    environment.cache_clear()
    await compile_templates(pause_seconds=0.0)

    cached = environment().cache
    assert cached is not None
    assert {name for _, name in cached} == set(environment().list_templates())
