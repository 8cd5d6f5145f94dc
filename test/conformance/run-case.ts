// Runs one case: creates its collections, performs its steps, and checks after every request that is expected to fail
// that it wrote nothing.

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Json, JsonObject } from '../../src/common/types.js';
import type { Case, Expectation, FilterStep, RequestStep, Step, TogetherStep } from './case.js';
import type { Incoming, Outgoing } from './exchange.js';
import { expand, expandString } from './expand.js';
import { differences, valueAt } from './match.js';
import type { ReplyRules } from './reply-rules.js';
import type { ProfileName, Servers, TestServer } from './servers.js';

export interface CaseContext {
  readonly servers: Servers;
  readonly rules: ReplyRules;
  /** `/v1` or empty. */
  readonly prefix: string;
  /** The server for steps that name none. */
  readonly server: ProfileName;
}

let caseCount = 0;

/** The smallest page limit of any server in the cases. */
const LISTED_MAX = 5;

export async function runCase(testCase: Case, context: CaseContext): Promise<void> {
  const run = new CaseRun(testCase, context);
  try {
    await run.setUp();
    for (const [i, step] of testCase.steps.entries()) await run.take(step, `step ${i + 1}`);
  } finally {
    await run.tearDown();
  }
}

class CaseRun {
  readonly #case: Case;
  readonly #context: CaseContext;
  readonly #variables: Record<string, Json>;
  readonly #used = new Set<TestServer>();
  /** State of each server whose last request was refused, so that the next refusal need not read it again. */
  readonly #states = new Map<TestServer, Json>();
  #mayHaveAliases = false;

  constructor(testCase: Case, context: CaseContext) {
    this.#case = testCase;
    this.#context = context;
    const collection = `case-${++caseCount}`;
    this.#variables = { collection, other: `${collection}-other`, prefix: context.prefix };
  }

  async setUp(): Promise<void> {
    const { collection, other, vectors } = this.#case;
    const expect = { status: 200 };
    const create = async (id: string, settings: JsonObject) => {
      const body = { id, ...settings };
      await this.#request({ method: 'POST', path: '/collections', body, expect }, 'set-up');
    };
    if (collection != null) await create('{{collection}}', collection);
    if (other !== undefined) await create('{{other}}', other);
    if (vectors === undefined || vectors === null) return;
    const path = '/collections/{{collection}}/vectors';
    await this.#request({ method: 'POST', path, body: { vectors }, expect }, 'set-up');
  }

  /** Deletes everything the case created, since the next case expects empty servers. */
  async tearDown(): Promise<void> {
    for (const server of this.#used) {
      if (server.isForOneCase) continue;
      if (this.#mayHaveAliases) await this.#deleteAliases(server);
      await deleteCollections(server);
    }
    await this.#context.servers.endCase();
  }

  async #deleteAliases(server: TestServer): Promise<void> {
    const list = await server.send({ method: 'GET', path: '/aliases', headers: {} });
    for (const { name } of valueAt(list.json, '/aliases') as { name: string }[]) {
      await server.send({ method: 'DELETE', path: `/aliases/${name}`, headers: {} });
    }
  }

  async take(step: Step, place: string): Promise<void> {
    if (!('method' in step && isRefusal(step))) this.#states.clear();
    if ('filter' in step) await this.#checkFilter(step, place);
    else if ('together' in step) await this.#takeTogether(step, place);
    else if ('waitMs' in step) await delay(step.waitMs);
    else if ('restart' in step) await (await this.#server()).restart();
    else if (isRefusal(step)) await this.#refuse(step, place);
    else await this.#request(step, place);
  }

  async #server(name = this.#context.server): Promise<TestServer> {
    const server = await this.#context.servers.get(name);
    this.#used.add(server);
    return server;
  }

  async #refuse(step: RequestStep, place: string): Promise<void> {
    const server = await this.#server(step.server);
    const before = this.#states.get(server) ?? (await this.#state(server));
    await this.#request(step, place);
    const after = await this.#state(server);
    assert.deepEqual(after, before, `${place}: a refusal changed something`);
    this.#states.set(server, after);
  }

  /** Reads what a write would change: the records of the collections and their number. */
  async #state(server: TestServer): Promise<Json> {
    const get = async (path: string) =>
      (await server.send({ method: 'GET', path, headers: {} })).json as JsonObject;
    const list = await get(`/collections?limit=${LISTED_MAX}`);
    if (list.code !== undefined) return list.code;
    const records = list.collections as JsonObject[];
    if (list.total !== records.length) {
      const { collection, other } = this.#variables;
      for (const id of [collection, other]) records.push(await get(`/collections/${id}`));
    }
    const states = records.map(
      ({ id, code, vector_count, sequence, updated_at, labels, description }) =>
        ({ id, code, vector_count, sequence, updated_at, labels, description }) as JsonObject,
    );
    return [...states, list.total!];
  }

  async #request(step: RequestStep, place: string): Promise<void> {
    const outgoing = this.#outgoing(step);
    if (outgoing.path.includes('aliases')) this.#mayHaveAliases = true;
    const server = await this.#server(step.server);
    const sending = Array.from({ length: step.times ?? 1 }, () => server.send(outgoing));
    for (const reply of await Promise.all(sending)) {
      const what = `${place}, ${outgoing.method} ${outgoing.path.slice(0, 200)}`;
      const complaints = [
        ...this.#compareAny(step, reply),
        ...this.#context.rules.check(outgoing, reply),
      ];
      const found = `found ${reply.status} ${reply.text.slice(0, 2000)}`;
      assert.ok(complaints.length === 0, `${what}\n  ${complaints.join('\n  ')}\n  ${found}`);
      this.#save(step, reply);
    }
  }

  #outgoing(step: RequestStep): Outgoing {
    const variables = this.#variables;
    const path = expandString(step.path, variables);
    const query = Object.entries(step.query ?? {}).map(([name, value]) => {
      const expanded = expand(value, variables);
      const text = typeof expanded === 'string' ? expanded : JSON.stringify(expanded);
      return `${encodeURIComponent(name)}=${encodeURIComponent(text)}`;
    });
    const prefix = step.operational === true ? '' : this.#context.prefix;
    const search = query.length === 0 ? '' : `${path.includes('?') ? '&' : '?'}${query.join('&')}`;
    return {
      method: step.method,
      path: prefix + path + search,
      headers: expand(step.headers ?? {}, variables) as Record<string, string | null>,
      body: this.#body(step),
    };
  }

  #body({ body, raw, base64 }: RequestStep): Buffer | undefined {
    if (base64 !== undefined) return Buffer.from(base64, 'base64');
    if (typeof raw === 'string') return Buffer.from(expandString(raw, this.#variables));
    if (raw !== undefined) return Buffer.from(raw.map(([text, n]) => text.repeat(n)).join(''));
    return body === undefined
      ? undefined
      : Buffer.from(JSON.stringify(expand(body, this.#variables)));
  }

  /** Differences from the expectations; empty if the reply matches one of them. */
  #compareAny({ expect }: RequestStep, reply: Incoming): string[] {
    const expectations = Array.isArray(expect) ? (expect as Expectation[]) : [expect];
    const complaints = expectations.map((one) => this.#compare(one as Expectation, reply));
    return complaints.some((list) => list.length === 0) ? [] : complaints.flat();
  }

  #compare(expectation: Expectation, reply: Incoming): string[] {
    const { status, headers = {}, body, text, problem } = expectation;
    if (reply.status !== status) return [`expected the status ${status}`];
    const compare = (found: Json | undefined, wanted: Json, place: string) =>
      differences(found, expand(wanted, this.#variables)).map((line) => `${place}: ${line}`);
    return [
      ...Object.entries(headers).flatMap(([name, wanted]) =>
        compare(reply.headers[name], wanted, `header ${name}`),
      ),
      ...(body === undefined ? [] : compare(reply.json, body, 'body')),
      ...(text === undefined ? [] : compare(reply.text, text, 'text')),
      ...(problem === undefined ? [] : compare(reply.json, problemPattern(problem), 'problem')),
    ];
  }

  #save({ save = {} }: RequestStep, reply: Incoming): void {
    for (const [name, place] of Object.entries(save)) {
      const found =
        place === '' || place.startsWith('/')
          ? valueAt(reply.json, place)
          : reply.headers[place.toLowerCase()];
      assert.ok(found !== undefined, `expected a value at ${place} to save as ${name}, found none`);
      this.#variables[name] = found;
    }
  }

  async #takeTogether({ together, apartMs = 0 }: TogetherStep, place: string): Promise<void> {
    await Promise.all(
      together.map(async (step, i) => {
        await delay(i * apartMs);
        await this.#request(step, `${place}.${i + 1}`);
      }),
    );
  }

  async #checkFilter({ filter, matches }: FilterStep, place: string): Promise<void> {
    const path = '/collections/{{collection}}';
    const ids = [...matches].map((id) => ({ id }));
    const count = matches.length;
    const dimension = Number(this.#case.collection?.dimension);
    const query = { vector: { $times: dimension, of: 1 }, top_k: 1000, filter };
    const anyOrder = { $unordered: ids };
    // Deletion refuses a filter without a condition, which would select every vector.
    const isEmpty = ['{}', '{"$and":[{}]}', '{"f":{"$nin":[]}}'].includes(JSON.stringify(filter));
    const selection = isEmpty ? { all: true } : { filter };
    const steps: RequestStep[] = [
      post(`${path}/count`, { filter }, { count }),
      post(`${path}/query`, query, { matches: anyOrder, total: count }),
      post(`${path}/vectors/delete`, { ...selection, dry_run: true }, { deleted_count: count }),
      {
        method: 'GET',
        path: `${path}/vectors`,
        query: { filter, limit: 1000, offset: 0 },
        expect: { status: 200, body: { vectors: anyOrder, total: count } },
      },
    ];
    const shown = `${place}, filter ${JSON.stringify(filter).slice(0, 200)}`;
    for (const step of steps) await this.#request(step, shown);
  }
}

async function deleteCollections(server: TestServer): Promise<void> {
  for (;;) {
    const list = await server.send({ method: 'GET', path: '/collections', headers: {} });
    const { collections, total } = list.json as { collections: { id: string }[]; total: number };
    for (const { id } of collections) {
      const path = `/collections/${id}`;
      const { status, text } = await server.send({ method: 'DELETE', path, headers: {} });
      assert.equal(status, 200, `the end of the case: ${text}`);
    }
    if (collections.length === total) return;
  }
}

function post(path: string, body: Json, reply: Json): RequestStep {
  return { method: 'POST', path, body, expect: { status: 200, body: reply } };
}

function isRefusal({ expect }: RequestStep): boolean {
  const expectations = (Array.isArray(expect) ? expect : [expect]) as Expectation[];
  return expectations.every(({ status }) => status >= 400);
}

function problemPattern(problem: NonNullable<Expectation['problem']>): Json {
  const { code, pointer, expected, actual, errors, detail } = problem;
  const finding: JsonObject = {};
  if (pointer !== undefined) finding.pointer = pointer;
  if (expected !== undefined) finding.expected = expected;
  if (actual !== undefined) finding.actual = actual;
  return {
    code,
    ...(detail === undefined ? {} : { detail }),
    ...(errors === undefined ? {} : { errors }),
    ...(Object.keys(finding).length === 0 ? {} : { errors: [finding] }),
  };
}
