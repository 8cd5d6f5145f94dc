// Queries a collection: a form, its result, and optionally a second query for comparison. The last query that was
// run is part of the address, so that it can be shared.

import type { CollectionRecord, QueryRequest } from '@sagitta/client';
import { Columns2, Play, X } from 'lucide-react';
import { type KeyboardEvent, useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { useMembers } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { Empty } from '../../ui/states.js';
import { useViewAction } from '../../ui/view-actions.js';
import { needsValues } from '../browse/browse-state.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { collectionPath } from '../routes.js';
import { VectorDetails } from '../vectors/vector-details.js';
import { Comparison } from './comparison.js';
import styles from './query.module.css';
import { changedDraft, decodeDraft, encodeDraft, type QueryDraft } from './query-draft.js';
import { QueryForm } from './query-form.js';
import { buildRequest } from './query-request.js';
import { QueryResult, useResultColumns } from './query-result.js';
import { type QueryState, queryState } from './query-state.js';
import { useMatches } from './use-matches.js';

export default function QueryView({ collection }: CollectionViewProps) {
  const [state, change] = useMembers(queryState(collection));
  const { run, problem } = useRun(collection, state, change);
  useViewAction('Run the query', run);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run();
  };
  return (
    <div className={styles.view}>
      <h1 className="visually-hidden">Query {collection.id}</h1>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a keyboard shortcut for the fields inside */}
      <div className={styles.queries} onKeyDown={onKeyDown}>
        <Forms
          collection={collection}
          draft={state.draft}
          onChange={(draft) => change({ draft })}
        />
        <div className={styles.run}>
          <Button kind="primary" icon={Play} onClick={run} aria-keyshortcuts="Control+Enter">
            Run
          </Button>
          <span className={styles.note}>
            <kbd>Ctrl Enter</kbd>
          </span>
          <p className={styles.problem} role="alert">
            {problem}
          </p>
        </div>
      </div>
      <div className={styles.results}>
        <Results collection={collection} state={state} change={change} />
      </div>
      {state.openId !== undefined && (
        <aside className={styles.details} aria-label="Details">
          <VectorDetails
            key={state.openId}
            collection={collection}
            id={state.openId}
            onClose={() => change({ openId: undefined })}
          />
        </aside>
      )}
    </div>
  );
}

/** Runs the draft, and any new draft in the address. */
function useRun(
  collection: CollectionRecord,
  { draft, segment, run: lastRun }: QueryState,
  change: (part: Partial<QueryState>) => void,
) {
  const [, navigate] = useLocation();
  const [problem, setProblem] = useState<string>();
  const start = (next: QueryDraft, nextSegment: string) => {
    const built = buildRequest(collection, next);
    const other = next.other === undefined ? undefined : buildRequest(collection, next.other);
    const found = built.problem ?? (other?.problem && `Second query: ${other.problem}`);
    setProblem(found);
    const number = (lastRun?.number ?? 0) + 1;
    const part = { draft: next, segment: nextSegment };
    if (found !== undefined) change(part);
    else change({ ...part, run: { number, request: built.request!, other: other?.request } });
    return found === undefined;
  };
  const addressed = segmentOf(window.location.hash);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new address starts a query
  useEffect(() => {
    if (addressed === undefined || addressed === segment) return;
    const found = decodeDraft(addressed);
    if (found !== undefined) start(found, addressed);
    else setProblem('The query in the address cannot be read. It may have been too long to share.');
  }, [addressed]);
  const run = () => {
    const next = encodeDraft(draft);
    if (start(draft, next)) navigate(`${collectionPath(collection.id, 'query')}/${next}`);
  };
  return { run, problem };
}

/** The draft in an address such as `#/collections/a/query/…`. */
function segmentOf(hash: string): string | undefined {
  return /^#\/collections\/[^/]+\/query\/(.+)$/.exec(hash)?.[1];
}

interface FormsProps {
  readonly collection: CollectionRecord;
  readonly draft: QueryDraft;
  readonly onChange: (draft: QueryDraft) => void;
}

function Forms({ collection, draft, onChange }: FormsProps) {
  const { other, ...first } = draft;
  return (
    <>
      <section aria-label={other === undefined ? 'Query' : 'First query'}>
        {other !== undefined && <h2 className={styles.formHeading}>First query</h2>}
        <QueryForm
          name="first"
          collection={collection}
          draft={first}
          onChange={(next) => onChange(changedDraft(next, { other }))}
        />
      </section>
      {other === undefined ? (
        <Button kind="quiet" icon={Columns2} onClick={() => onChange({ ...first, other: first })}>
          Compare with a second query
        </Button>
      ) : (
        <section aria-label="Second query">
          <h2 className={styles.formHeading}>
            Second query
            <Button kind="quiet" icon={X} onClick={() => onChange(first)}>
              Remove
            </Button>
          </h2>
          <QueryForm
            name="second"
            collection={collection}
            draft={other}
            onChange={(next) => onChange({ ...first, other: next })}
          />
        </section>
      )}
    </>
  );
}

interface ResultsProps {
  readonly collection: CollectionRecord;
  readonly state: QueryState;
  readonly change: (part: Partial<QueryState>) => void;
}

const ALL_SCORES = { score_stats: { histogram: { bucket_count: 40 } } } as const;

function Results({ collection, state, change }: ResultsProps) {
  const { run, hasAllScores } = state;
  const columns = useResultColumns(collection);
  const hasValues = needsValues(collection, columns);
  const options = { runNumber: run?.number ?? 0, hasValues };
  const first = useMatches(collection.id, withScores(run?.request, hasAllScores), options);
  const second = useMatches(collection.id, run?.other, options);
  if (run === undefined) {
    return (
      <Empty title="Nothing has been searched yet">
        Choose what to search for, and run the query.
      </Empty>
    );
  }
  return run.other === undefined ? (
    <QueryResult
      collection={collection}
      request={run.request}
      result={first}
      columns={columns}
      state={state}
      change={change}
    />
  ) : (
    <Comparison
      first={first}
      second={second}
      openId={state.openId}
      onOpen={(openId) => change({ openId })}
    />
  );
}

function withScores(
  request: QueryRequest | undefined,
  hasAllScores: boolean,
): QueryRequest | undefined {
  if (!hasAllScores || request === undefined || request.text !== undefined) return request;
  return { ...request, ...ALL_SCORES };
}
