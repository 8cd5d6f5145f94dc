// Pages after one another, and what is on them one by one. A cursor carries all that the next page
// needs, so it is sent alone.

/** Stops asking once its reader leaves the loop. */
export async function* pagesOf<
  Request extends object,
  Page extends { readonly next_cursor?: string },
>(
  request: Request,
  load: (request: Request | { readonly cursor: string }) => Promise<Page>,
): AsyncGenerator<Page, void, undefined> {
  let page = await load(request);
  yield page;
  while (page.next_cursor !== undefined && page.next_cursor !== '') {
    page = await load({ cursor: page.next_cursor });
    yield page;
  }
}

/** `pick` names what a page holds. */
export async function* itemsOf<Page, Item>(
  pages: AsyncIterable<Page>,
  pick: (page: Page) => readonly Item[],
): AsyncGenerator<Item, void, undefined> {
  for await (const page of pages) yield* pick(page);
}
