from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest
from rich.pretty import pretty_repr

from overspill.errors import SettingsError
from overspill.models.endpoints import Endpoint, from_environment
from overspill.models.facts import UNKNOWN_FACTS, ModelFacts, find_facts
from overspill.models.opening import open_model
from overspill.settings.keys import ProviderKind


def test_an_endpoint_shows_neither_key_nor_header_values_nor_passwords() -> None:
    endpoint = Endpoint(
        kind="openai-compatible",
        base_url="https://me:hush@host.example:8443/v1?token=hush",
        api_key="hush",
        headers={"X-Token": "hush"},
    )
    assert repr(endpoint) == (
        "Endpoint(kind='openai-compatible', base_url='https://host.example:8443/v1', "
        "api_key='***', headers=['X-Token'], timeout=120.0)"
    )
    assert "hush" not in pretty_repr(endpoint)
    assert repr(Endpoint(kind="ollama")) == "Endpoint(kind='ollama', base_url='', api_key='', headers=[], timeout=120.0)"


def test_the_environment_gives_the_providers_it_has_keys_for() -> None:
    found = from_environment({"ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g", "GROQ_API_KEY": "q", "OPENAI_API_KEY": ""})
    assert found == {
        "ollama": Endpoint(kind="ollama"),
        "anthropic": Endpoint(kind="anthropic", api_key="a"),
        "google": Endpoint(kind="google", api_key="g"),
        "groq": Endpoint(kind="openai-compatible", api_key="q"),
    }


def test_another_address_for_openai_is_a_compatible_server() -> None:
    found = from_environment({"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"})
    assert found["openai"] == Endpoint(kind="openai-compatible", base_url="http://127.0.0.1:8080/v1")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", ""),
        ("box", "http://box:11434/v1"),
        ("box:1234", "http://box:1234/v1"),
        ("https://ollama.example/", "https://ollama.example/v1"),
        ("http://box:1/api/v1", "http://box:1/api/v1"),
    ],
)
def test_ollama_is_where_its_own_variable_says(host: str, url: str) -> None:
    assert from_environment({"OLLAMA_HOST": host})["ollama"].base_url == url


@pytest.mark.parametrize("target", ["gpt-4o", "/gpt-4o", "openai/", ""])
def test_a_target_without_both_parts_is_refused(target: str) -> None:
    with pytest.raises(SettingsError, match=r"is not a model\. Name it provider/model, like anthropic/claude-sonnet-4-5\.$"):
        open_model(target, {}, {})


def test_an_unknown_provider_is_answered_with_the_nearest_and_the_way_to_add_one() -> None:
    with pytest.raises(SettingsError) as refused:
        open_model("antropic/claude", {"lab": Endpoint(kind="ollama")}, {})
    assert str(refused.value) == (
        "No model provider is called 'antropic'. Did you mean 'anthropic'? "
        "Known: anthropic, deepseek, google, groq, lab, mistral, ollama, openai, openrouter, xai. "
        "For any other server, configure an endpoint called 'antropic' of the kind openai-compatible with its base URL."
    )
    with pytest.raises(SettingsError, match=r"^No model provider is called 'zzz'\. Known: "):
        open_model("zzz/m", {}, {})


@pytest.mark.parametrize(
    ("target", "endpoints", "text"),
    [
        ("openai/gpt-4o", {}, "No API key for 'openai': set OPENAI_API_KEY, or give the endpoint 'openai' a key."),
        ("groq/llama", {}, "No API key for 'groq': set GROQ_API_KEY, or give the endpoint 'groq' a key."),
        (
            "lab/claude",
            {"lab": Endpoint(kind="anthropic", base_url="https://lab.example")},
            "No API key for 'lab': name its variable in providers.lab.apiKeyEnv, or give the endpoint 'lab' a key.",
        ),
        (
            "lab/m",
            {"lab": Endpoint(kind="openai-compatible")},
            "The model endpoint 'lab' has no base URL. Give it one, like http://127.0.0.1:8080/v1.",
        ),
    ],
)
def test_an_incomplete_endpoint_is_refused_with_what_is_missing(target: str, endpoints: dict[str, Endpoint], text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        open_model(target, endpoints, {})
    assert str(refused.value) == text


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://", "http://[::1", "http://box:port/v1", "http://box:99999"])
def test_an_invalid_base_url_is_refused_when_the_model_is_opened(url: str) -> None:
    endpoint = Endpoint(kind="openai-compatible", base_url=url)
    with pytest.raises(SettingsError) as refused:
        open_model("lab/m", {"lab": endpoint}, {})
    assert str(refused.value) == (
        "The base URL of the model endpoint 'lab' is not the address of a server. It should look like http://127.0.0.1:8080/v1."
    )
    assert endpoint.address == ""


@pytest.mark.parametrize("host", ["box:port", "http://[::1"])
def test_an_invalid_address_of_ollama_is_reported_only_when_it_is_asked(host: str) -> None:
    found = from_environment({"OLLAMA_HOST": host})
    with pytest.raises(SettingsError, match=r"^The base URL of the model endpoint 'ollama' is not the address of a server"):
        open_model("ollama/qwen3", found, {})


def test_without_the_extra_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "overspill.models.providers", raising=False)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(SettingsError) as refused:
        open_model("ollama/qwen3", {}, {})
    assert str(refused.value) == (
        "ollama/qwen3 needs the package pydantic-ai-slim, which is not installed or too old. "
        "In a clone of Overspill: `pip install '.[models]'`."
    )


def test_importing_the_protocol_loop_and_endpoints_loads_no_client_library() -> None:
    script = (
        "import sys, overspill.models.conversation, overspill.testing, overspill.models.endpoints, overspill.models.targets\n"
        "heavy = 'pydantic', 'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'pytest'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.slow
def test_a_well_known_provider_needs_nothing_but_its_key() -> None:
    pytest.importorskip("pydantic_ai", reason="the extra 'models' is not installed: pip install '.[models]'")
    endpoints = from_environment({"OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"})
    model = open_model("openai/gpt-4.1-mini", endpoints, {})
    assert (model.name, model.context_window, model.max_output_tokens) == ("openai/gpt-4.1-mini", 1_047_576, 32_768)
    routed = open_model("openrouter/meta-llama/llama-3.1-8b", endpoints, {})
    assert (routed.name, routed.context_window) == ("openrouter/meta-llama/llama-3.1-8b", 131_072)
    mine = open_model("mine/m", {"mine": Endpoint(kind="ollama")}, {"mine/m": ModelFacts(context_window=16_000)})
    assert (mine.context_window, mine.max_output_tokens) == (16_000, 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", get_args(ProviderKind))
def test_every_kind_of_provider_has_a_client_that_connects(kind: ProviderKind) -> None:
    pytest.importorskip("pydantic_ai", reason="the extra 'models' is not installed: pip install '.[models]'")
    endpoint = Endpoint(kind=kind, base_url="http://127.0.0.1:9/v1", api_key="k")
    assert open_model("lab/m", {"lab": endpoint}, {}).name == "lab/m"


@pytest.mark.parametrize(
    ("target", "facts"),
    [
        ("openai/gpt-4o-mini", ModelFacts(128_000, 16_384)),
        ("openai/o3", ModelFacts(200_000, 100_000)),
        ("anthropic/claude-3-5-haiku-latest", ModelFacts(200_000, 8_192)),
        ("anthropic/claude-sonnet-4-5", ModelFacts(200_000, 32_000)),
        ("google/gemini-2.5-pro", ModelFacts(1_048_576, 65_536)),
        ("ollama/llama3.2", ModelFacts(4_096, 1_024)),
        ("vllm/Qwen/Qwen3-8B", ModelFacts(131_072, 8_192)),
        ("local/whatever", UNKNOWN_FACTS),
    ],
)
def test_families_of_models_are_known_by_their_names(target: str, facts: ModelFacts) -> None:
    assert find_facts(target, {}) == facts


def test_configured_facts_win_figure_by_figure() -> None:
    assert find_facts("ollama/q", {"ollama/q": ModelFacts(context_window=32_768)}) == ModelFacts(32_768, 1_024)
    assert find_facts("local/q", {"local/q": ModelFacts(max_output_tokens=9)}) == ModelFacts(32_768, 9)
    assert find_facts("local/q", {"local/q": ModelFacts(context_window=2_048)}) == ModelFacts(2_048, 512)
    assert find_facts("local/q", {"local/other": ModelFacts(1, 1)}) == UNKNOWN_FACTS
