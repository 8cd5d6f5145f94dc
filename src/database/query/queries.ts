// The queries of a database's collections, one by one or many from one snapshot, and the grades of
// somebody's answers.

import type { JsonObject } from '../../common/types.js';
import type { CallOptions } from '../api.js';
import type { Collection } from '../collection/collection.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import { observePage } from '../observer.js';
import { parseFilterAt } from './filter-at.js';
import { answerPlans } from './query.js';
import type {
  QueryReply,
  QueryRequest,
  QuerySession,
  RecallReply,
  RecallRequest,
} from './query-api.js';
import { planQuery } from './query-plan.js';
import { openSession, type SessionContext } from './query-session.js';
import { runRecall } from './recall.js';

export interface QueriesOptions extends SessionContext {
  /** Whether the id of the collection still stands for it. */
  readonly isServing: (collection: Collection) => boolean;
}

export class Queries {
  readonly #options: QueriesOptions;

  constructor(options: QueriesOptions) {
    this.#options = options;
  }

  async one(
    collection: Collection,
    request: QueryRequest,
    { signal }: CallOptions,
  ): Promise<QueryReply> {
    if (request.minSequence !== undefined && request.cursor === undefined) {
      await collection.waitForSequence(request.minSequence, signal);
    }
    const answering = this.#answer(collection, request, signal);
    return observePage(this.#options.observer, request.cursor, answering);
  }

  async open(
    collection: Collection,
    { minSequence = 0, signal }: CallOptions & { readonly minSequence?: number | undefined },
  ): Promise<QuerySession> {
    await collection.waitForSequence(minSequence, signal);
    return openSession(this.#lookAt(collection), this.#options, signal);
  }

  async recall(
    collection: Collection,
    request: RecallRequest,
    { signal }: CallOptions,
  ): Promise<RecallReply> {
    await collection.waitForSequence(request.minSequence ?? 0, signal);
    const view = this.#lookAt(collection);
    try {
      return await runRecall(view, request, { ...this.#options, signal });
    } finally {
      view.close();
    }
  }

  async #answer(
    collection: Collection,
    request: QueryRequest,
    signal: AbortSignal | undefined,
  ): Promise<QueryReply> {
    const { limits, sealer, now, observer } = this.#options;
    const parseFilter = (filter: JsonObject) => parseFilterAt('/filter', filter, limits);
    const view = this.#lookAt(collection);
    try {
      const plan = planQuery(view, request, { limits, sealer, now: now(), parseFilter });
      view.keep(plan.sequence);
      const [reply] = await answerPlans(view, [plan], { ...this.#options, signal });
      const { timings, work } = reply!;
      observer.queriesAnswered(1, timings, work);
      return reply!;
    } finally {
      view.close();
    }
  }

  #lookAt(collection: Collection): SnapshotView {
    return new SnapshotView(collection, () => this.#options.isServing(collection));
  }
}
