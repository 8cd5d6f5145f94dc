// The engines of two checkouts, each in a process of its own, and the cases that they run in turns.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Parameters, Shape } from '../engine/options.js';
import { quantile } from '../engine/timing.js';
import type { ChildReply, ChildRequest, EngineCase } from './engine-child.js';
import { type Compared, type TurnPlan, takeTurns } from './turns.js';
import type { VectorSource } from './vectors.js';

const CHILD = fileURLToPath(new URL('./engine-child.js', import.meta.url));

export interface PairResult {
  /** The median latency of a call if it has one query, otherwise queries per second. */
  readonly compared: Compared;
  /** The rate of this checkout, measured in the same turns. */
  readonly queriesPerSecond: number;
  /** The rows of the checked queries, best first. */
  readonly rows: readonly (readonly number[])[];
}

export class EnginePair {
  readonly #children = [fork(CHILD), fork(CHILD)];
  #shape: Shape = { rowCount: 0, dimension: 0 };

  /** The shape of the data, without its queries. */
  get shape(): Shape {
    return this.#shape;
  }

  /** Starts the engines of both checkouts and loads the data into each. */
  static async open(
    roots: readonly [before: string, after: string],
    source: VectorSource,
    parameters: Parameters,
  ): Promise<EnginePair> {
    const pair = new EnginePair();
    try {
      for (const [index, root] of roots.entries()) {
        const reply = await pair.#ask(index, { kind: 'open', root, source, parameters });
        if (reply.kind !== 'opened') throw unexpected(reply);
        pair.#shape = reply;
      }
    } catch (error) {
      pair.close();
      throw error;
    }
    return pair;
  }

  /** Throws if the two find different rows or scores. */
  async run(engineCase: EngineCase, plan: TurnPlan): Promise<PairResult> {
    const expected = await this.#ask(0, { kind: 'check', engineCase });
    const found = await this.#ask(1, { kind: 'check', engineCase });
    if (expected.kind !== 'checked' || found.kind !== 'checked') throw unexpected(found);
    if (expected.checksum !== found.checksum) {
      throw new Error(`${engineCase.name}: the two checkouts find different rows or scores`);
    }
    const rates: number[] = [];
    const compared = await takeTurns(plan, async (side) => {
      const reply = await this.#ask(side, { kind: 'time', engineCase, seconds: plan.turnSeconds });
      if (reply.kind !== 'timed') throw unexpected(reply);
      const { p50Ms, queriesPerSecond } = reply.timing;
      if (side === 1) rates.push(queriesPerSecond);
      return engineCase.batchCount === 1 ? p50Ms : queriesPerSecond;
    });
    return { compared, queriesPerSecond: quantile(rates, 0.5), rows: found.rows };
  }

  close(): void {
    for (const child of this.#children) child.kill();
  }

  async #ask(index: number, request: ChildRequest): Promise<ChildReply> {
    const child = this.#children[index]!;
    const ended = new AbortController();
    const { signal } = ended;
    const onExit = once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`the process of an engine ended with code ${code}`);
    });
    onExit.catch(() => {});
    child.send(request);
    const [reply] = (await Promise.race([once(child, 'message', { signal }), onExit])) as [
      ChildReply,
    ];
    ended.abort();
    if (reply.kind === 'failed') throw new Error(reply.message);
    return reply;
  }
}

function unexpected(reply: ChildReply): Error {
  return new Error(`unexpected reply ${reply.kind} of the process of an engine`);
}
