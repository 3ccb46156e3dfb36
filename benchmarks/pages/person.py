"""Person's actions on a page, performed through Playwright by the page's own names of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

__all__ = ["Person"]

FIND = """async name => {
  for (let turn = 0; turn < 400; turn++) {
    const one = h[name];
    if (one?.isConnected && (one.checkVisibility() || one.type === 'file')) return one;
    await new Promise(done => setTimeout(done, 15));
  }
  throw new Error('no element ' + name);
}"""
TRIES = 4
PAUSE_MS = 60
"""Rest between the parts of a mouse's way, so that the page follows it."""


class Person:
    """Someone at a page. page: the tab that is used; frame: one of its frames instead of it."""

    def __init__(self, page: Page, frame: Frame | None = None) -> None:
        self.page = page
        self._scope: Page | Frame = page if frame is None else frame

    async def inside(self, *hooks: str) -> Person:
        """Return the person in a frame: the element with the first name, and so on inside."""
        person = self
        for hook in hooks:
            frame = await (await person.at(hook)).content_frame()
            if frame is None:
                raise RuntimeError(f"{hook} is no frame")
            await frame.wait_for_load_state()
            person = Person(self.page, frame)
        return person

    async def at(self, hook: str) -> ElementHandle:
        """Wait for an element and return it."""
        element = (await self._scope.evaluate_handle(FIND, hook)).as_element()
        if element is None:
            raise RuntimeError(f"{hook} is no element")
        return element

    async def click(self, *hooks: str, times: int = 1) -> None:
        """Click elements one after the other."""
        for hook in hooks:
            await self._click(hook, times)

    async def _click(self, hook: str, times: int) -> None:
        """Click an element; one that the page draws anew meanwhile is looked for again."""
        from playwright.async_api import Error

        for turn in range(TRIES):
            try:
                await (await self.at(hook)).click(click_count=times)
            except Error as exc:
                if "not attached" not in exc.message or turn + 1 == TRIES:
                    raise
            else:
                return

    async def menu(self, hook: str) -> None:
        """Click an element with the right button."""
        await (await self.at(hook)).click(button="right")

    async def hover(self, hook: str) -> None:
        """Move the mouse over an element."""
        await (await self.at(hook)).hover()

    async def fill(self, **texts: str) -> None:
        """Write into fields by their names."""
        for hook, text in texts.items():
            await (await self.at(hook)).fill(text)

    async def type(self, hook: str, text: str) -> None:
        """Click a field and type by single keys."""
        await self.click(hook)
        await self.page.keyboard.type(text)

    async def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        for key in keys:
            await self.page.keyboard.press(key)

    async def select(self, hook: str, *labels: str) -> None:
        """Select options of a list by their labels."""
        await (await self.at(hook)).select_option(label=list(labels))

    async def upload(self, hook: str, *paths: str) -> None:
        """Choose files."""
        await (await self.at(hook)).set_input_files(list(paths))

    async def drag(self, hook: str, onto: str, part: float = 0.5) -> None:
        """Pull an element onto another. part: of the height of the other, from its top."""
        x, y = await self._place(hook)
        to_x, to_y = await self._place(onto, part)
        await self._pull((x, y), (x + 4, y + 4), ((x + to_x) / 2, (y + to_y) / 2), (to_x, to_y))

    async def draw(self, hook: str, *points: tuple[float, float]) -> None:
        """Press the mouse at the first point of an element, and move it over the others."""
        x, y = await self._corner(hook)
        await self._pull(*((x + right, y + down) for right, down in points))

    async def click_at(self, hook: str, x: float, y: float) -> None:
        """Click a point of an element, from its upper left corner."""
        await (await self.at(hook)).click(position={"x": x, "y": y})

    async def scroll_to(self, hook: str) -> None:
        """Turn the wheel until an element is there and shown."""
        is_shown = """name => { const box = h[name]?.getBoundingClientRect();
            return Boolean(box) && box.height > 0 && box.bottom <= innerHeight; }"""
        for _ in range(60):
            if await self._scope.evaluate(is_shown, hook):
                return
            await self.page.mouse.wheel(0, 400)
            await self.page.wait_for_timeout(PAUSE_MS)
        raise RuntimeError(f"{hook} was not reached")

    async def _pull(self, *points: tuple[float, float]) -> None:
        mouse = self.page.mouse
        await mouse.move(*points[0])
        await mouse.down()
        for point in points[1:]:
            await mouse.move(*point, steps=3)
            await self.page.wait_for_timeout(PAUSE_MS)
        await mouse.up()

    async def _place(self, hook: str, part: float = 0.5) -> tuple[float, float]:
        element = await self.at(hook)
        await element.scroll_into_view_if_needed()
        box = await element.bounding_box()
        if box is None:
            raise RuntimeError(f"{hook} is not shown")
        return box["x"] + box["width"] / 2, box["y"] + box["height"] * part

    async def _corner(self, hook: str) -> tuple[float, float]:
        element = await self.at(hook)
        await element.scroll_into_view_if_needed()
        box = await element.bounding_box()
        if box is None:
            raise RuntimeError(f"{hook} is not shown")
        return box["x"], box["y"]
