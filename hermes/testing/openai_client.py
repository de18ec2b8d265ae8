"""OpenAI's own client, as a client of the test service."""

import openai
from openai.types.chat import ChatCompletionMessageParam

from hermes.testing.service import SERVICE_KEY, Service

KITCHEN = {"X-Hermes-Session-Id": "kitchen"}
"""Headers that make a request belong to the session `kitchen`."""


def client_of(service: Service, key: str = SERVICE_KEY) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{service.base_url}/v1",
        api_key=key,
        max_retries=0,
        # The service has no TLS, so the client need not load certificates, which would take 40 ms.
        http_client=openai.DefaultAsyncHttpxClient(verify=False),
    )


def user_says(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]
