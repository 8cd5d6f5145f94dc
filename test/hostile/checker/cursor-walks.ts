// Walks through lists and results page by page, with writes and restarts of the service between the pages. All pages
// must show the state of the first one, and a page that is read again must be the same.

import type { Attempt } from './attempt.js';
import { type Filter, filterJson, type Metric } from './model.js';
import { explainList, explainQuery, type MatchesReply, type ReadRow } from './reads.js';
import { isBusy, parse, type Recorder } from './recorder.js';

interface Page {
  /** Null for the first page. */
  readonly cursor: string | null;
  readonly body: Record<string, unknown>;
}

export interface Walk {
  /** Contains the node of each page in a cluster, and the life in which it was read. */
  title: string;
  /** Whether the walk is over a query or a list. */
  readonly isQuery: boolean;
  readonly pages: Page[];
  readonly openedAt: number;
  readonly life: number;
  /** In a cluster, the node that replied with the first page. */
  readonly node: string | undefined;
}

export async function startWalk(
  recorder: Recorder,
  options: {
    readonly filter: Filter | null;
    readonly vector: readonly number[] | null;
    readonly limit: number;
    readonly metric: Metric;
  },
): Promise<Walk | null> {
  const { filter, vector, limit, metric } = options;
  const isQuery = vector !== null;
  const title = `${isQuery ? 'results' : 'list'} by ${limit}${filter === null ? '' : ` of ${JSON.stringify(filterJson(filter))}`}`;
  const attempt = isQuery
    ? await postQuery(recorder, {
        vector,
        limit,
        include_metadata: true,
        ...(filter === null ? {} : { filter: filterJson(filter) }),
      })
    : await getList(recorder, {
        limit: String(limit),
        include_values: 'true',
        ...(filter === null ? {} : { filter: JSON.stringify(filterJson(filter)) }),
      });
  const body = bodyOf(recorder, title, attempt);
  if (body === null) return null;
  const { startedAt, endedAt, node, mayLag } = attempt;
  const walk: Walk = {
    title: `${title}${placeOf(recorder, attempt)}`,
    isQuery,
    pages: [{ cursor: null, body }],
    openedAt: startedAt,
    life: recorder.life,
    node,
  };
  const bodies = () => walk.pages.map((page) => page.body);
  const search = { metric, filter, besides: null };
  recorder.history.reads.push({
    get title() {
      return walk.title;
    },
    startedAt,
    endedAt,
    node,
    mayLag,
    sequence: isQuery ? (body.sequence as number) : null,
    explain: isQuery
      ? explainQuery(
          { search, vector, topK: null, limit },
          () => bodies() as unknown as MatchesReply[],
        )
      : explainList(
          filter,
          limit,
          () => bodies() as unknown as { vectors: ReadRow[]; has_more: boolean }[],
        ),
    seen: [],
  });
  recorder.counters.reads++;
  return body.has_more === true ? walk : null;
}

/** Reads the next page, or an earlier one again. Returns whether the walk is over. */
export async function walkFurther(
  recorder: Recorder,
  walk: Walk,
  random: () => number,
  mayExpire: (ageMs: number) => boolean,
): Promise<boolean> {
  const { pages, isQuery, title } = walk;
  const last = pages.at(-1)!;
  const again = pages[1 + Math.floor(random() * (pages.length - 1))];
  const isAgain = again !== undefined && random() < 0.3;
  const cursor = isAgain ? again.cursor! : String(last.body.next_cursor);
  const attempt = isQuery
    ? await postQuery(recorder, { cursor })
    : await getList(recorder, { cursor });
  const { reply, endedAt } = attempt;
  if (reply?.status === 400 && parse(reply.text).code === 'cursor_expired') {
    const ageMs = endedAt - walk.openedAt;
    if (!mayExpire(ageMs)) recorder.unexpected(`${title}, after ${Math.round(ageMs)} ms`, reply);
    recorder.counters.cursorsExpired++;
    return true;
  }
  const body = bodyOf(recorder, title, attempt);
  if (body === null) return false;
  if (walk.life !== recorder.life) recorder.counters.pagesAfterRestart++;
  if (walk.node !== attempt.node) recorder.counters.pagesOfOtherNodes++;
  const known = pages.find((page) => page.cursor === cursor);
  if (known !== undefined) {
    recorder.counters.pagesAgain++;
    const [first, second] = [textOf(known.body), textOf(body)];
    if (first !== second) {
      const detail = `${title}, page ${pages.indexOf(known) + 1}: first ${first}, then ${second}`;
      recorder.fault('different page', detail);
    }
    return false;
  }
  if (body.sequence !== last.body.sequence) {
    const detail = `${title}: a page is of sequence ${body.sequence}, the one before of ${last.body.sequence}`;
    recorder.fault('different page', detail);
  }
  pages.push({ cursor, body });
  walk.title += placeOf(recorder, attempt);
  return body.has_more !== true;
}

function placeOf({ life }: Recorder, { node, startedAt }: Attempt): string {
  return node === undefined ? '' : `, ${node} in life ${life} at ${startedAt.toFixed(0)} ms`;
}

/** Excludes the cursor, whose encryption differs each time. */
function textOf({ next_cursor, ...members }: Record<string, unknown>): string {
  return JSON.stringify({ ...members, hasCursor: next_cursor !== undefined });
}

function postQuery(recorder: Recorder, body: object): Promise<Attempt> {
  return recorder.send({
    method: 'POST',
    path: `${recorder.path}/query`,
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  });
}

function getList(
  recorder: Recorder,
  parameters: Readonly<Record<string, string>>,
): Promise<Attempt> {
  const query = new URLSearchParams(parameters).toString();
  return recorder.send({ method: 'GET', path: `${recorder.path}/vectors?${query}` });
}

function bodyOf(
  recorder: Recorder,
  title: string,
  { reply }: Attempt,
): Record<string, unknown> | null {
  if (reply === null || isBusy(reply)) return null;
  if (reply.status === 200) return parse(reply.text);
  recorder.unexpected(title, reply);
  return null;
}
