// Answers many queries from one snapshot. All queries of a request are planned before any is searched.
// They are searched in groups that fill the batches of the engine, bounded by the memory of their matches.

import { cutByWeight } from '../../common/cut-by-weight.js';
import {
  field,
  ISSUES_MAX,
  rowField,
  SagittaError,
  type ValidationIssue,
} from '../../common/errors.js';
import { UNNAMED } from '../../common/vectors.js';
import { whenAborted } from '../../common/when-aborted.js';
import type { CallOptions } from '../api/database-api.js';
import { type DatabaseObserver, observeCursorError, observeReplies } from '../api/observer.js';
import type { PreparedQueries, QueryRequest, QuerySession } from '../api/query-api.js';
import type { Collection } from '../collection/collection.js';
import { reachCursor, reachSequence } from '../collection/reach-sequence.js';
import { rowSizesOf } from '../collection/row-sizes.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import { rankingContext } from '../rankings/kinds.js';
import type { CursorSealer, QueryCursor } from './cursor.js';
import { matchBytesOf } from './match-bytes.js';
import { openCursor } from './paging.js';
import { answerPlans } from './query.js';
import { checkQuery } from './query-issues.js';
import { planQuery, type QueryPlan } from './query-plan.js';
import type { QueryServices } from './query-services.js';

/** Bounds the matches of a group; a request holds a few groups. */
const GROUP_BYTES_MAX = 32 * 1024 * 1024;
/** Bounds the matches of a group further, as a share of `replyBytesInFlightMax`, in a service with little memory. */
const GROUP_SHARE = 1 / 16;

export interface SessionOptions extends CallOptions {
  readonly minSequence?: number | undefined;
  /** The cursors of the queries to come. */
  readonly cursors?: readonly string[];
}

/** Waits until the write `minSequence` and the snapshots of cursors are visible. Rejects with the signal's reason. */
export async function openSession(
  collection: Collection,
  { minSequence = 0, cursors = [], signal }: SessionOptions,
  services: QueryServices,
): Promise<QuerySession> {
  const { collections, observer, limits, sealer, clock, scheduler } = services;
  const { groupQueriesMax } = scheduler.batching;
  await reachSequence(collection, minSequence, signal);
  const reached = await reachCursors(collection, cursors, sealer, signal);
  const view = new SnapshotView(collection, collections);
  const ignoreAbort = whenAborted(signal, () => view.close());
  const close = () => {
    ignoreAbort();
    view.close();
  };
  return {
    sequence: view.sequence,
    vectors: collection.definition.vectors,
    shapeOf(name = UNNAMED) {
      return collection.multiShapeOf(name) ?? collection.shapeOf(name, field('using'));
    },
    groupQueriesMax,
    prepare(requests, firstIndex = 0): readonly PreparedQueries[] {
      const context = { ...rankingContext(view, limits), now: clock.now() };
      const planOne = (request: QueryRequest) => {
        const checked = checkQuery(request, limits);
        const { cursor: token } = checked;
        if (token === undefined) return planQuery(checked, null, context);
        const cursor = reached.get(token) ?? openCursor(token, 'query', collection, sealer);
        return planQuery(checked, cursor, context);
      };
      const plans = planAll(view, requests, firstIndex, { observer, planOne });
      const rowSizes = rowSizesOf(collection);
      const queries = plans.map((plan, i) => ({
        plan,
        request: requests[i]!,
        matchBytes: matchBytesOf(plan, rowSizes),
      }));
      const groups = cutByWeight(queries, {
        countMax: groupQueriesMax,
        weightMax: Math.min(GROUP_BYTES_MAX, limits.replyBytesInFlightMax * GROUP_SHARE),
        weightOf: ({ matchBytes }) => matchBytes,
      });
      let next = firstIndex;
      return groups.map((group) => {
        const first = next;
        next += group.length;
        return {
          firstIndex: first,
          count: group.length,
          matchBytes: group.reduce((sum, { matchBytes }) => sum + matchBytes, 0),
          async answer(options = {}) {
            const groupPlans = group.map(({ plan }) => plan);
            const replies = await answerPlans(view, groupPlans, services, options.signal).finally(
              () => collection.requireIntact(),
            );
            const groupRequests = group.map(({ request }) => request);
            observeReplies(observer, groupRequests, replies);
            return replies;
          },
        };
      });
    },
    close,
  };
}

/** Opens the cursors and waits for their snapshots. Invalid cursors are left out. */
async function reachCursors(
  collection: Collection,
  tokens: readonly string[],
  sealer: CursorSealer,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, QueryCursor>> {
  const reached = new Map<string, QueryCursor>();
  for (const token of tokens) {
    try {
      reached.set(token, openCursor(token, 'query', collection, sealer));
    } catch (error) {
      // Planning the query will report the error.
      if (!(error instanceof SagittaError)) throw error;
    }
  }
  for (const cursor of reached.values()) await reachCursor(cursor, collection, signal);
  return reached;
}

/** Throws the issues of all requests, as issues of row `firstIndex + i`. */
function planAll(
  view: SnapshotView,
  requests: readonly QueryRequest[],
  firstIndex: number,
  {
    observer,
    planOne,
  }: {
    readonly observer: DatabaseObserver;
    readonly planOne: (request: QueryRequest) => QueryPlan;
  },
): readonly QueryPlan[] {
  const plans: QueryPlan[] = [];
  const errors: SagittaError[] = [];
  const issues: ValidationIssue[] = [];
  for (const [i, request] of requests.entries()) {
    try {
      const plan = planOne(request);
      // Kept until the group of this query is searched.
      view.pin(plan.sequence);
      plans.push(plan);
    } catch (error) {
      if (!(error instanceof SagittaError)) throw error;
      observeCursorError(observer, request.cursor, error);
      errors.push(error);
      issues.push(...issuesOfRow(firstIndex + i, error));
      if (issues.length >= ISSUES_MAX) break;
    }
  }
  const [first] = errors;
  if (first === undefined) return plans;
  const code = errors.every((error) => error.code === first.code) ? first.code : 'invalid_request';
  const others = errors.length === 1 ? '' : ` This is the first of ${errors.length} such queries.`;
  throw new SagittaError(code, `${first.message}${others}`, { issues });
}

function issuesOfRow(row: number, error: SagittaError): readonly ValidationIssue[] {
  if (error.issues.length === 0) {
    // An error without issues is about the vector that the query names by its id.
    return [{ location: rowField(row, 'id'), code: error.code, detail: error.message }];
  }
  return error.issues.map((issue) => ({ ...issue, location: { ...issue.location, row } }));
}
