"""Pictures of pages on which a secret was typed."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.browser_harness import BrowserHarness
from testbed.webserver import serving, text
from uncaged_browser.operations import read_operation
from uncaged_browser.secrets import BoundSecrets

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

PAGE = """<!doctype html><title>Login</title><style>*{margin:0} label,p,iframe{display:block;height:50px}</style>
<label>Password <input id=field></label><p id=shown></p><iframe srcdoc="<b id=inner></b>"></iframe>
<button onclick="shown.innerText = 'You typed ' + field.value;
  frames[0].document.getElementById('inner').innerText = field.value">Show</button>"""
MASKED_ROWS = """async source => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + source;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const {data} = context.getImageData(0, 0, image.width, image.height);
  const rows = new Set();
  for (let at = 0; at < data.length; at += 4)
    if (data[at] === 255 && data[at + 1] === 0 && data[at + 2] === 255) rows.add(Math.floor(at / 4 / image.width / 50));
  return [...rows];
}"""
"""Returns which parts of a picture, of 50 pixels each, are covered."""


def test_a_picture_shows_no_secret(harness: BrowserHarness) -> None:
    """A picture covers the field that a secret was typed into, and each text that repeats it, in
    frames, too.
    """
    with serving(lambda _: text(PAGE, "text/html")) as site:
        secrets = BoundSecrets(values={"LOGIN": "correct horse"}, hosts={"LOGIN": [site.host]})

        async def covered() -> list[int]:
            async with harness.context() as context:

                async def do(name: str, **body: Any) -> Any:
                    return await context.perform(read_operation({"do": name, **body}), secrets)

                await do("navigate", url=f"{site.url}/")
                before = await do("screenshot")
                await do("fill", target={"label": "Password"}, text="secret:LOGIN")
                await do("click", target={"role": "button", "name": "Show"})
                after = await do("screenshot")
                page = context.tabs.page(None)
                assert await page.evaluate(MASKED_ROWS, before["png"]) == []
                rows: list[int] = await page.evaluate(MASKED_ROWS, after["png"])
                return rows

        assert harness.run(covered()) == [0, 1, 2]
