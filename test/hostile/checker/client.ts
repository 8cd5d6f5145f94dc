// A client that sends random requests to the collections, one after another, mostly about the same few ids.

import type { Attempt } from './attempt.js';
import { startWalk, type Walk, walkFurther } from './cursor-walks.js';
import type { Explain } from './history.js';
import { type Change, type Filter, filterJson, type Metadata, type Row } from './model.js';
import {
  explainCount,
  explainExport,
  explainFetch,
  explainMissing,
  explainQuery,
  type MatchesReply,
  type ReadRow,
} from './reads.js';
import { isBusy, parse, type Recorder } from './recorder.js';
import { openStream, type StreamEnd, sendStream } from './streams.js';

export const DIMENSION = 9;
const ID_COUNT = 24;
const TAGS = ['red', 'green', 'blue'];
const N_COUNT = 10;
const JSON_HEADERS = { 'content-type': 'application/json' };

export interface ClientOptions {
  readonly recorder: Recorder;
  readonly random: () => number;
  /** Shared by all clients of the collection. */
  readonly walks: Walk[];
  /** Whether a cursor of this age, in milliseconds, may be refused. */
  readonly mayExpire: (ageMs: number) => boolean;
  /** Streams are only for collections that are never emptied. */
  readonly hasStreams: boolean;
}

export class Client {
  readonly #options: ClientOptions;
  readonly #recorder: Recorder;
  readonly #random: () => number;
  /** Entity tags returned by reads, by id. */
  readonly #etags = new Map<string, { readonly etag: string; readonly sequence: number }>();

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#recorder = options.recorder;
    this.#random = options.random;
  }

  /** Sends one request, or a few that belong together. */
  async act(): Promise<void> {
    const actions: readonly (readonly [weight: number, act: () => Promise<unknown>])[] = [
      [14, () => this.#upsert()],
      [5, () => this.#writeByMode()],
      [5, () => this.#put()],
      [7, () => this.#patch()],
      [4, () => this.#deleteOne()],
      [4, () => this.#deleteIds()],
      [3, () => this.#deleteWhere()],
      [4, () => this.#updateWhere()],
      [this.#options.hasStreams ? 3 : 0, () => this.#stream()],
      [3, () => this.#replay()],
      [14, () => this.#fetch()],
      [7, () => this.#get()],
      [10, () => this.#query()],
      [4, () => this.#queryBatch()],
      [5, () => this.#count()],
      [3, () => this.#export()],
      [10, () => this.#walk()],
    ];
    const sum = actions.reduce((total, [weight]) => total + weight, 0);
    let at = this.#random() * sum;
    for (const [weight, act] of actions) {
      at -= weight;
      if (at < 0) {
        await act();
        return;
      }
    }
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #id(): string {
    return `v${this.#below(ID_COUNT)}`;
  }

  #ids(countMax: number): string[] {
    const count = 1 + this.#below(countMax);
    return [...new Set(Array.from({ length: count }, () => this.#id()))];
  }

  #values(): number[] {
    // Never all zeros, which the cosine metric refuses.
    return Array.from({ length: DIMENSION }, (_, i) => (i === 0 ? 1 : 0) + this.#below(4));
  }

  #row(id: string, w: string): Row {
    const metadata: Metadata = {
      w,
      tag: TAGS[this.#below(TAGS.length)]!,
      n: this.#below(N_COUNT),
      ...(this.#random() < 0.5 ? { x: `x${this.#below(5)}` } : {}),
    };
    return { id, values: this.#values(), metadata };
  }

  #filter(): Filter {
    const tag = TAGS[this.#below(TAGS.length)]!;
    const n = this.#below(N_COUNT);
    const kinds: readonly Filter[] = [
      { kind: 'tag', tag },
      { kind: 'from', n },
      { kind: 'not', tag, below: n },
    ];
    return kinds[this.#below(kinds.length)]!;
  }

  #patchOf(w: string): Record<string, unknown> {
    return {
      w,
      ...(this.#random() < 0.5 ? { n: this.#below(N_COUNT) } : {}),
      ...(this.#random() < 0.3 ? { tag: TAGS[this.#below(TAGS.length)] } : {}),
      ...(this.#random() < 0.5 ? { x: this.#random() < 0.5 ? null : 'patched' } : {}),
    };
  }

  #send(path: string, body: object): Promise<Attempt> {
    return this.#recorder.send({
      method: 'POST',
      path: `${this.#recorder.path}${path}`,
      body: JSON.stringify(body),
      headers: JSON_HEADERS,
    });
  }

  #write(options: {
    title: string;
    tag: string;
    change: Change;
    method: string;
    path: string;
    body?: object;
    headers?: Readonly<Record<string, string>>;
    isDryRun?: boolean;
  }) {
    const { title, tag, change, method, path, body, headers, isDryRun } = options;
    // Only POST accepts idempotency keys.
    const hasKey = method === 'POST' && isDryRun !== true && this.#random() < 0.6;
    return this.#recorder.write({
      title,
      tag,
      change,
      hasKey,
      ...(isDryRun === undefined ? {} : { isDryRun }),
      call: {
        method,
        path: `${this.#recorder.path}${path}`,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        headers: { ...(body === undefined ? {} : JSON_HEADERS), ...headers },
      },
    });
  }

  /** The expected sequence of a row: the last one read, or a different one. */
  #expectedSequence(id: string): number {
    return this.#random() < 0.8 ? (this.#etags.get(id)?.sequence ?? 0) : this.#below(50);
  }

  #rowsToWrite(tag: string, countMax: number) {
    const isConditional = this.#random() < 0.2;
    return this.#ids(isConditional ? 2 : countMax).map((id) => ({
      ...this.#row(id, tag),
      ...(isConditional ? { ifSequence: this.#expectedSequence(id) } : {}),
    }));
  }

  #postRows(mode: 'upsert' | 'insert' | 'update', countMax: number) {
    const tag = this.#recorder.takeTag();
    const rows = this.#rowsToWrite(tag, countMax);
    const vectors = rows.map(({ ifSequence, ...row }) => ({
      ...row,
      ...(ifSequence === undefined ? {} : { if_sequence: ifSequence }),
    }));
    return this.#write({
      title: `${mode} ${rows.map(({ id }) => id).join(', ')}`,
      tag,
      change: { kind: 'write', mode, rows },
      method: 'POST',
      path: '/vectors',
      body: { vectors, mode },
    });
  }

  #upsert() {
    return this.#postRows('upsert', 6);
  }

  #writeByMode() {
    return this.#postRows(this.#random() < 0.5 ? 'insert' : 'update', 2);
  }

  #put() {
    const tag = this.#recorder.takeTag();
    const id = this.#id();
    const { values, metadata } = this.#row(id, tag);
    return this.#write({
      title: `put ${id}`,
      tag,
      change: { kind: 'write', mode: 'upsert', rows: [{ id, values, metadata }] },
      method: 'PUT',
      path: `/vectors/${id}`,
      body: { values, metadata },
    });
  }

  #patch() {
    const tag = this.#recorder.takeTag();
    const id = this.#id();
    const patch = this.#patchOf(tag);
    const values = this.#random() < 0.3 ? { values: this.#values() } : {};
    const known = this.#etags.get(id);
    const hasTag = known !== undefined && this.#random() < 0.4;
    const ifSequence = hasTag
      ? { ifSequence: known.sequence }
      : this.#random() < 0.2
        ? { ifSequence: this.#expectedSequence(id) }
        : {};
    const isInBody = !hasTag && ifSequence.ifSequence !== undefined;
    return this.#write({
      title: `patch ${id}${hasTag ? ` if it is ${known.etag}` : ''}`,
      tag,
      change: { kind: 'patch', id, patch, ...values, ...ifSequence },
      method: 'PATCH',
      path: `/vectors/${id}`,
      body: {
        metadata: patch,
        ...values,
        ...(isInBody ? { if_sequence: ifSequence.ifSequence } : {}),
      },
      ...(hasTag ? { headers: { 'if-match': known.etag } } : {}),
    });
  }

  #deleteOne() {
    const id = this.#id();
    const isConditional = this.#random() < 0.3;
    const ifSequence = this.#expectedSequence(id);
    return this.#write({
      title: `delete ${id}`,
      tag: this.#recorder.takeTag(),
      change: { kind: 'deleteOne', id, ...(isConditional ? { ifSequence } : {}) },
      method: 'DELETE',
      path: `/vectors/${id}${isConditional ? `?if_sequence=${ifSequence}` : ''}`,
    });
  }

  #deleteIds() {
    const ids = this.#ids(3);
    return this.#write({
      title: `delete ${ids.join(', ')}`,
      tag: this.#recorder.takeTag(),
      change: { kind: 'delete', ids },
      method: 'POST',
      path: '/vectors/delete',
      body: { ids },
    });
  }

  #deleteWhere() {
    const mayEmpty = !this.#options.hasStreams && this.#random() < 0.1;
    const filter = mayEmpty ? null : this.#filter();
    const isDryRun = this.#random() < 0.4;
    return this.#write({
      title: `delete ${filter === null ? 'all' : JSON.stringify(filterJson(filter))}${isDryRun ? ', dry run' : ''}`,
      tag: this.#recorder.takeTag(),
      change: { kind: 'deleteWhere', filter },
      method: 'POST',
      path: '/vectors/delete',
      body: {
        ...(filter === null ? { all: true } : { filter: filterJson(filter) }),
        ...(isDryRun ? { dry_run: true } : {}),
      },
      isDryRun,
    });
  }

  #updateWhere() {
    const tag = this.#recorder.takeTag();
    const filter = this.#filter();
    const patch = this.#patchOf(tag);
    const limit = this.#random() < 0.4 ? { limit: 1 + this.#below(4) } : {};
    return this.#write({
      title: `update ${JSON.stringify(filterJson(filter))}`,
      tag,
      change: { kind: 'update', filter, patch, ...limit },
      method: 'POST',
      path: '/vectors/update',
      body: { filter: filterJson(filter), patch, ...limit },
    });
  }

  async #stream() {
    const count = 2 + this.#below(5);
    const tags = Array.from({ length: count }, () => this.#recorder.takeTag());
    const isArrow = this.#random() < 0.7;
    // The first id is the same in all parts, which is where NDJSON is split into writes.
    const first = this.#id();
    const batches = tags.map((tag) => [
      this.#row(first, tag),
      ...this.#ids(2)
        .filter((id) => id !== first)
        .map((id) => this.#row(id, tag)),
      { id: `part-${tag}`, values: this.#values(), metadata: { w: tag, tag: 'part' } },
    ]);
    const stream = openStream(this.#recorder, { tags, batches, isArrow });
    const ends: readonly StreamEnd[] = ['whole', 'truncated', 'cut'];
    const attempts = this.#below(3);
    for (let i = 0; i < attempts; i++) {
      const end = ends[this.#below(ends.length)]!;
      if (await sendStream(this.#recorder, stream, end, 0.2 + 0.79 * this.#random())) return;
    }
    // Otherwise another client repeats it, at the latest after the next start.
    if (this.#random() < 0.7) await sendStream(this.#recorder, stream, 'whole', 1);
  }

  /** Repeats a request under a key, whether or not its reply is known. */
  async #replay() {
    const { unanswered, answered } = this.#recorder;
    const open = [...unanswered];
    const from = open.length > 0 && this.#random() < 0.5 ? open : answered;
    if (from.length > 0) await this.#recorder.resend(from[this.#below(from.length)]!);
  }

  async #fetch() {
    const ids = this.#ids(8);
    const title = `fetch ${ids.join(', ')}`;
    const attempt = await this.#send('/vectors/fetch', { ids, include_sequence: true });
    const json = this.#replyOf(title, attempt);
    if (json === null) return;
    const reply = json as unknown as { vectors: readonly ReadRow[]; not_found: readonly string[] };
    this.#note(title, attempt, { explain: explainFetch(ids, reply), rows: reply.vectors });
  }

  async #get() {
    const id = this.#id();
    const title = `get ${id}`;
    const attempt = await this.#recorder.send({
      method: 'GET',
      path: `${this.#recorder.path}/vectors/${id}?include_sequence=true`,
    });
    if (attempt.reply?.status === 404) {
      this.#etags.delete(id);
      this.#note(title, attempt, { explain: explainMissing(id) });
      return;
    }
    const json = this.#replyOf(title, attempt);
    if (json === null) return;
    const row = json as unknown as ReadRow;
    const etag = String(attempt.reply!.headers.etag);
    if (!etag.endsWith(`-${row.sequence}"`)) {
      this.#recorder.fault('wrong reply', `${title}: sequence ${row.sequence}, ETag ${etag}`);
    }
    this.#etags.set(id, { etag, sequence: row.sequence! });
    const explain = explainFetch([id], { vectors: [row], not_found: [] });
    this.#note(title, attempt, { explain, rows: [row] });
  }

  #question() {
    const { metric } = this.#recorder.history;
    const filter = this.#random() < 0.5 ? this.#filter() : null;
    const topK = 1 + this.#below(30);
    const besides = this.#random() < 0.2 ? this.#id() : null;
    const vector = besides === null ? this.#values() : null;
    return {
      body: {
        ...(besides === null ? { vector } : { id: besides }),
        top_k: topK,
        include_metadata: true,
        ...(filter === null ? {} : { filter: filterJson(filter) }),
      },
      besides,
      explainedBy: (reply: MatchesReply) =>
        explainQuery({ search: { metric, filter, besides }, vector, topK, limit: topK }, () => [
          reply,
        ]),
    };
  }

  async #query() {
    const { body, besides, explainedBy } = this.#question();
    const title = `query by ${besides ?? 'vector'}`;
    const minSequence = this.#random() < 0.3 ? this.#recorder.sequence : 0;
    const attempt = await this.#send('/query', { ...body, min_sequence: minSequence });
    if (besides !== null && attempt.reply?.status === 404) {
      this.#note(title, attempt, { explain: explainMissing(besides), minSequence });
      return;
    }
    const json = this.#replyOf(title, attempt);
    if (json === null) return;
    const explain = explainedBy(json as unknown as MatchesReply);
    this.#note(title, attempt, { explain, minSequence, sequence: json.sequence as number });
  }

  async #queryBatch() {
    const questions = Array.from({ length: 2 + this.#below(4) }, () => this.#question()).filter(
      ({ besides }) => besides === null,
    );
    if (questions.length === 0) return;
    const title = `batch of ${questions.length} queries`;
    const attempt = await this.#send('/query/batch', {
      queries: questions.map(({ body }) => body),
    });
    const json = this.#replyOf(title, attempt);
    if (json === null) return;
    const results = json.results as readonly (MatchesReply & { sequence: number })[];
    const sequences = new Set(results.map(({ sequence }) => sequence));
    if (sequences.size > 1) {
      const detail = `${title}: its results are of sequences ${[...sequences].join(', ')}`;
      this.#recorder.fault('wrong reply', detail);
    }
    for (const [i, result] of results.entries()) {
      const explain = questions[i]!.explainedBy(result);
      this.#note(`${title}, ${i}`, attempt, { explain, sequence: result.sequence });
    }
  }

  async #count() {
    const filter = this.#random() < 0.7 ? this.#filter() : null;
    const body = filter === null ? {} : { filter: filterJson(filter) };
    const title = `count ${JSON.stringify(body)}`;
    const attempt = await this.#send('/count', body);
    const json = this.#replyOf(title, attempt);
    if (json === null) return;
    this.#note(title, attempt, { explain: explainCount(filter, json.count as number) });
  }

  async #export() {
    const attempt = await this.#recorder.send({
      method: 'GET',
      path: `${this.#recorder.path}/export?format=ndjson`,
    });
    const { reply } = attempt;
    if (reply === null || isBusy(reply)) return;
    if (reply.status !== 200) return this.#recorder.unexpected('export', reply);
    const rows = rowsOfLines(reply.text);
    const sequence = Number(reply.headers['sagitta-sequence']);
    this.#note('export', attempt, { explain: explainExport(rows), sequence });
  }

  async #walk() {
    const { walks, mayExpire } = this.#options;
    const open = walks.length > 0 && this.#random() < 0.85;
    const metric = this.#recorder.history.metric;
    if (open) {
      const walk = walks[this.#below(walks.length)]!;
      const isOver = await walkFurther(this.#recorder, walk, this.#random, mayExpire);
      if (isOver && walks.includes(walk)) walks.splice(walks.indexOf(walk), 1);
      return;
    }
    const filter = this.#random() < 0.5 ? this.#filter() : null;
    const vector = this.#random() < 0.5 ? this.#values() : null;
    const limit = 1 + this.#below(8);
    const walk = await startWalk(this.#recorder, { filter, vector, limit, metric });
    if (walk !== null) walks.push(walk);
  }

  /** The body of a success; null if there is nothing to check. */
  #replyOf(title: string, { reply }: Attempt): Record<string, unknown> | null {
    if (reply === null) return null;
    if (reply.status === 200) return parse(reply.text);
    if (isBusy(reply)) this.#recorder.counters.busy++;
    else this.#recorder.unexpected(title, reply);
    return null;
  }

  #note(
    title: string,
    { startedAt, endedAt, node, mayLag }: Attempt,
    read: {
      readonly explain: Explain;
      readonly minSequence?: number | undefined;
      readonly sequence?: number;
      readonly rows?: readonly ReadRow[];
    },
  ): void {
    const { explain, minSequence, sequence = null, rows = [] } = read;
    const seen = rows.map((row) => ({ tag: row.metadata!.w, sequence: row.sequence! }));
    const asked = { title, startedAt, endedAt, node, mayLag, minSequence };
    this.#recorder.history.reads.push({ ...asked, sequence, explain, seen });
    this.#recorder.counters.reads++;
  }
}

export function rowsOfLines(text: string): ReadRow[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ReadRow);
}
