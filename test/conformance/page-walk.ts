// Reads a result page by page, or in as few requests as the contract allows, for tests that compare the two.

import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/common/types.js';
import type { createCaller } from '../support/server-process.js';

export type Call = ReturnType<typeof createCaller>['call'];

export interface Page extends JsonObject {
  next_cursor: string;
  has_more: boolean;
}

/** A page and the cursor it was requested with, which is undefined for the first page. */
export interface TakenPage {
  readonly cursor: string | undefined;
  readonly page: Page;
}

interface PageRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
}

export interface Walk {
  readonly name: string;
  /** The member of a page that holds its records. */
  readonly records: 'matches' | 'vectors';
  first(limit: number): PageRequest;
  next(cursor: string): PageRequest;
  /** Reads the whole result: as one page or, for a list, as pages of the maximum size. */
  whole(call: Call): Promise<unknown[]>;
}

/** @param path of the collection. */
export function queryWalk(name: string, path: string, query: JsonObject): Walk {
  const body = { include_metadata: true, ...query };
  const request = (fields: JsonObject): PageRequest => {
    return { method: 'POST', path: `${path}/query`, body: fields };
  };
  return {
    name,
    records: 'matches',
    first: (limit) => request({ ...body, limit }),
    next: (cursor) => request({ cursor }),
    async whole(call) {
      const page = await takePage(call, request({ top_k: 10_000, ...body }));
      assert.equal(page.has_more, false);
      return page.matches as unknown[];
    },
  };
}

/** @param path of the collection. */
export function listWalk(
  name: string,
  path: string,
  query: Readonly<Record<string, string>>,
): Walk {
  const request = (fields: Readonly<Record<string, string>>): PageRequest => {
    return { method: 'GET', path: `${path}/vectors?${new URLSearchParams(fields)}` };
  };
  return {
    name,
    records: 'vectors',
    first: (limit) => request({ ...query, limit: String(limit) }),
    next: (cursor) => request({ cursor }),
    async whole(call) {
      const records: unknown[] = [];
      for (;;) {
        const at = { limit: '1000', offset: String(records.length) };
        const page = await takePage(call, request({ ...query, ...at }));
        records.push(...(page.vectors as unknown[]));
        if (!page.has_more) return records;
      }
    },
  };
}

/** Reads all pages from the first. `between` runs before each of the later pages. */
export async function takePages(
  call: Call,
  walk: Walk,
  first: Page,
  between: () => Promise<void> = async () => {},
): Promise<TakenPage[]> {
  const taken: TakenPage[] = [{ cursor: undefined, page: first }];
  for (let page = first; page.has_more; ) {
    await between();
    const cursor: string = page.next_cursor;
    page = await takePage(call, walk.next(cursor));
    taken.push({ cursor, page });
  }
  return taken;
}

export async function takePage(call: Call, request: PageRequest): Promise<Page> {
  return JSON.parse(await takeText(call, request)) as Page;
}

export async function takeText(call: Call, request: PageRequest): Promise<string> {
  const reply = await call(request.method, request.path, request.body);
  assert.equal(reply.status, 200, reply.text);
  return reply.text;
}
