// The engines of two checkouts, each in a process of its own, and the cases that they run in turns.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Case } from '../engine/cases.js';
import type { DataName, Parameters } from '../engine/options.js';
import type { ChildReply, ChildRequest } from './engine-child.js';
import { type Compared, type TurnPlan, takeTurns } from './turns.js';

const CHILD = fileURLToPath(new URL('./engine-child.js', import.meta.url));

export class EnginePair {
  readonly #children = [fork(CHILD), fork(CHILD)];

  /** Starts the engines of both checkouts and loads the data into each. */
  static async open(
    roots: readonly [before: string, after: string],
    name: DataName,
    parameters: Parameters,
  ): Promise<EnginePair> {
    const pair = new EnginePair();
    try {
      for (const [index, root] of roots.entries()) {
        const reply = await pair.#ask(index, { kind: 'open', root, name, parameters });
        if (reply.kind !== 'opened') throw unexpected(reply);
      }
    } catch (error) {
      pair.close();
      throw error;
    }
    return pair;
  }

  /**
   * Returns the median latency of a call if it has one query, otherwise queries per second. Throws if the two find
   * different rows or scores.
   */
  async run(benchCase: Case, plan: TurnPlan): Promise<Compared> {
    const expected = await this.#ask(0, { kind: 'check', benchCase });
    const found = await this.#ask(1, { kind: 'check', benchCase });
    if (expected.kind !== 'checked' || found.kind !== 'checked') throw unexpected(found);
    if (expected.checksum !== found.checksum) {
      throw new Error(`${benchCase.name}: the two checkouts find different rows or scores`);
    }
    return takeTurns(plan, async (side) => {
      const reply = await this.#ask(side, { kind: 'time', benchCase, seconds: plan.turnSeconds });
      if (reply.kind !== 'timed') throw unexpected(reply);
      const { p50Ms, queriesPerSecond } = reply.timing;
      return benchCase.batchCount === 1 ? p50Ms : queriesPerSecond;
    });
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
