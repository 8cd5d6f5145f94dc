// Queries a collection: a form beside its result or its request, and optionally a second query for comparison. The
// last request that was run is the address, so that it can be shared.

import { type CollectionRecord, type JsonObject, SagittaClientError } from '@sagitta/client';
import { Braces, Code, Columns2, LayoutGrid, Table2, X } from 'lucide-react';
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useMembers, type ValueStore } from '../../api/store.js';
import { Button, IconButton } from '../../ui/button.js';
import { Empty } from '../../ui/states.js';
import { useViewAction } from '../../ui/view-actions.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { parseObject } from '../filter/filter-values.js';
import { collectionPath } from '../routes.js';
import { VectorDetails } from '../vectors/vector-details.js';
import { Comparison } from './comparison.js';
import { CopyDialog } from './copy-dialog.js';
import { withToggled } from './facet-filter.js';
import { HistoryList } from './history-list.js';
import styles from './query.module.css';
import {
  type Change,
  changed,
  decodeQuery,
  encodeQuery,
  type QueryDraft,
  type QueryOptions,
  type QueryPair,
} from './query-draft.js';
import { QueryForm } from './query-form.js';
import { withRun } from './query-history.js';
import { type BuiltRequest, buildRequest, kindOf, readRequest } from './query-request.js';
import { QueryResult, ResultSummary } from './query-result.js';
import { type QueryState, queryHistory, queryState, type ResultLayout } from './query-state.js';
import { RequestPane, type RequestPaneProps } from './request-pane.js';
import { type Matches, useMatches } from './use-matches.js';
import { isStoredId, rowWithTitle, useStored, useTitlePath } from './use-rows.js';

export default function QueryView({ collection }: CollectionViewProps) {
  const store = queryState(collection);
  const [state, change] = useMembers(store);
  const results = useRef<HTMLDivElement>(null);
  const { run, runPair, problem, setProblem } = useRun(collection, store, results);
  useViewAction('Run the query', run);
  const first = useMatches(collection.id, state.run?.request, state.run?.number ?? 0);
  const second = useMatches(collection.id, state.run?.other, state.run?.number ?? 0);
  const changeForm = (part: Pick<QueryState, 'draft'> | Pick<QueryState, 'other'>) => {
    change({
      ...part,
      ...('draft' in part ? { requestText: undefined } : { otherText: undefined }),
    });
    setProblem(undefined);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    run();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a keyboard shortcut for the fields inside
    <div className={styles.view} onKeyDown={onKeyDown}>
      <h1 className="visually-hidden">Query {collection.id}</h1>
      <div className={styles.queries}>
        <Forms
          collection={collection}
          state={state}
          errors={[
            useErrors(first, state.run?.drafts[0] === state.draft),
            useErrors(second, state.run?.drafts[1] === state.other),
          ]}
          onChange={changeForm}
          onMoreShown={(isMoreShown) => change({ isMoreShown })}
          onRun={run}
        />
        <p className={styles.problem} role="alert">
          {problem}
        </p>
        <HistoryList
          collection={collection}
          isShown={state.isHistoryShown ?? state.run === undefined}
          onShown={(isHistoryShown) => change({ isHistoryShown })}
          onRun={runPair}
        />
      </div>
      <div className={styles.results} ref={results}>
        <Results {...{ collection, store, change, first, second, run, setProblem }} />
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

/** Runs the drafts, the queries of the history, and any new query in the address. */
function useRun(
  collection: CollectionRecord,
  store: ValueStore<QueryState>,
  results: { readonly current: HTMLElement | null },
) {
  const [, navigate] = useLocation();
  const titlePath = useTitlePath(collection.id);
  const [problem, setProblem] = useState<string>();
  const start = (pair: QueryPair, segment: string) => {
    const { run, ...state } = store.get();
    setProblem(undefined);
    const drafts = [state.draft, state.other] as const;
    store.set({ ...state, segment, run: { ...pair, drafts, number: (run?.number ?? 0) + 1 } });
    const history = queryHistory(collection.id);
    history.set(withRun(history.get(), pair, new Date().toISOString()));
    showOnNarrowPage(results.current);
  };
  const startAndNavigate = (pair: QueryPair) => {
    const segment = encodeQuery(pair);
    start(pair, segment);
    navigate(`${collectionPath(collection.id, 'query')}/${segment}`);
  };
  /** Shows a query from outside in the forms. */
  const show = ({ request, other }: QueryPair) =>
    store.set({
      ...store.get(),
      draft: readRequest(collection, request as unknown as JsonObject),
      other: other && readRequest(collection, other as unknown as JsonObject),
      requestText: undefined,
      otherText: undefined,
    });
  const addressed = segmentOf(window.location.hash);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new address starts a query
  useEffect(() => {
    if (addressed === undefined || addressed === store.get().segment) return;
    const pair = decodeQuery(addressed);
    if (pair === undefined) {
      setProblem('The query in the address cannot be read. It may have been too long to share.');
      return;
    }
    show(pair);
    start(pair, addressed);
  }, [addressed]);
  const run = async () => {
    const { draft, other, requestText, otherText } = store.get();
    const unread = problemOf(requestText) ?? problemOf(otherText);
    const resolved = await resolveDraft(collection, draft, titlePath);
    const otherResolved = other && (await resolveDraft(collection, other, titlePath));
    if (store.get().draft === draft) store.set({ ...store.get(), draft: resolved.draft });
    const built = buildRequest(collection, resolved.draft, resolved.isStored);
    const second =
      otherResolved && buildRequest(collection, otherResolved.draft, otherResolved.isStored);
    const found = unread ?? built.problem ?? (second?.problem && `Second query: ${second.problem}`);
    if (found !== undefined) setProblem(found);
    else startAndNavigate({ request: built.request!, other: second?.request });
  };
  const runPair = (pair: QueryPair) => {
    show(pair);
    startAndNavigate({ request: pair.request, other: pair.other });
  };
  return { run: () => void run(), runPair, problem, setProblem };
}

/** Why the text of a request pane cannot be read, if there is one. */
function problemOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : parseObject(text).problem;
}

/**
 * Asks the server whether the input is an id, unless the kind is chosen. Words in a collection that cannot be searched
 * by words become the id of the vector with such a title.
 */
async function resolveDraft(
  collection: CollectionRecord,
  draft: QueryDraft,
  titlePath: string | undefined,
): Promise<{ readonly draft: QueryDraft; readonly isStored: boolean }> {
  const [first, ...rest] = draft.rankings;
  const isOpen = draft.custom === undefined && first!.by === undefined;
  const input = first!.input.trim();
  if (!isOpen || input === '') return { draft, isStored: false };
  const isStored = await isStoredId(collection.id, input);
  if (isStored || kindOf(collection, first!, false) !== 'id') return { draft, isStored };
  const id = await rowWithTitle(collection.id, titlePath, input);
  if (id === undefined) return { draft, isStored };
  return { draft: { ...draft, rankings: [{ ...first!, by: 'id', input: id }, ...rest] }, isStored };
}

/** Where the result is below the form, it may be out of view. */
function showOnNarrowPage(results: HTMLElement | null): void {
  if (results !== null && results.getBoundingClientRect().top > window.innerHeight / 2) {
    results.scrollIntoView({ block: 'start' });
  }
}

/** The query in an address such as `#/collections/a/query/…`. */
function segmentOf(hash: string): string | undefined {
  return /^#\/collections\/[^/]+\/query\/(.+)$/.exec(hash)?.[1];
}

/** The request of a draft as it would be sent now. */
function useBuilt(collection: CollectionRecord, draft: QueryDraft): BuiltRequest {
  const isStored = useStored(collection.id, draft.rankings[0]!.input) != null;
  return useMemo(() => buildRequest(collection, draft, isStored), [collection, draft, isStored]);
}

/** What the server refused, by JSON pointer, if the form still shows the request. */
function useErrors({ error }: Matches, isShown: boolean): ReadonlyMap<string, string> {
  return useMemo(() => {
    if (!(error instanceof SagittaClientError) || !isShown) return new Map();
    if (error.code === 'vector_not_found') return new Map([['/id', error.detail]]);
    return new Map(error.items.map(({ pointer, detail }) => [pointer, detail]));
  }, [error, isShown]);
}

interface FormsProps {
  readonly collection: CollectionRecord;
  readonly state: QueryState;
  readonly errors: readonly [ReadonlyMap<string, string>, ReadonlyMap<string, string>];
  readonly onChange: (part: Pick<QueryState, 'draft'> | Pick<QueryState, 'other'>) => void;
  readonly onMoreShown: (isShown: boolean) => void;
  readonly onRun: () => void;
}

function Forms({ collection, state, errors, onChange, onMoreShown, onRun }: FormsProps) {
  const { draft, other, isMoreShown } = state;
  const shared = { collection, isMoreShown, onMoreShown, onRun };
  return (
    <>
      <section aria-label={other === undefined ? 'Query' : 'First query'}>
        {other !== undefined && <h2 className={styles.formHeading}>First query</h2>}
        <QueryForm
          {...shared}
          name="first"
          draft={draft}
          errors={errors[0]}
          onChange={(next) => onChange({ draft: next })}
        />
      </section>
      {other === undefined ? (
        <Button kind="quiet" icon={Columns2} onClick={() => onChange({ other: draft })}>
          Compare with a second query
        </Button>
      ) : (
        <section aria-label="Second query">
          <h2 className={styles.formHeading}>
            Second query
            <Button kind="quiet" icon={X} onClick={() => onChange({ other: undefined })}>
              Remove
            </Button>
          </h2>
          <QueryForm
            {...shared}
            name="second"
            draft={other}
            errors={errors[1]}
            onChange={(next) => onChange({ other: next })}
          />
        </section>
      )}
    </>
  );
}

interface ResultsProps {
  readonly collection: CollectionRecord;
  readonly store: ValueStore<QueryState>;
  readonly change: (part: Partial<QueryState>) => void;
  readonly first: Matches;
  readonly second: Matches;
  readonly run: () => void;
  readonly setProblem: (problem: string | undefined) => void;
}

function Results(props: ResultsProps) {
  const { collection, store, change, first, second, run } = props;
  const { run: lastRun, layout, openId } = store.get();
  const titlePath = useTitlePath(collection.id);
  const onOpen = (id: string) => change({ openId: id });
  /** Changes members of the first query, and runs it. */
  const changeOptions = (part: Change<QueryOptions>) => {
    change({ draft: withOptions(store.get().draft, part), requestText: undefined });
    run();
  };
  return (
    <>
      <ResultHeader {...props} />
      {layout === 'json' && <RequestPanes {...props} />}
      {layout !== 'json' && lastRun === undefined && (
        <Empty title="Run a query to see matches here." />
      )}
      {layout !== 'json' && lastRun !== undefined && lastRun.other === undefined && (
        <QueryResult
          collection={collection}
          request={lastRun.request}
          result={first}
          layout={layout}
          openId={openId}
          onOpen={onOpen}
          onToggle={(path, value) => {
            const filter = lastRun.request.filter as JsonObject | undefined;
            changeOptions({ filter: withToggled(filter, path, value) });
          }}
          onAllScores={(hasAllScores) =>
            changeOptions({ score_stats: hasAllScores ? ALL_SCORES : undefined })
          }
        />
      )}
      {layout !== 'json' && lastRun?.other !== undefined && (
        <Comparison
          titlePath={titlePath}
          first={first}
          second={second}
          openId={openId}
          onOpen={onOpen}
        />
      )}
    </>
  );
}

const ALL_SCORES = { histogram: { bucket_count: 40 } } as const;

function withOptions(draft: QueryDraft, part: Change<QueryOptions>): QueryDraft {
  return draft.custom === undefined
    ? { ...draft, options: changed(draft.options, part) }
    : { ...draft, custom: changed(draft.custom, part as Change<JsonObject>) };
}

const LAYOUTS = [
  { layout: 'table', label: 'Show a table', icon: Table2 },
  { layout: 'cards', label: 'Show cards', icon: LayoutGrid },
  { layout: 'json', label: 'Show request and reply', icon: Braces },
] as const satisfies readonly { layout: ResultLayout; label: string; icon: unknown }[];

function ResultHeader({ collection, store, change, first }: ResultsProps) {
  const [isCopying, setCopying] = useState(false);
  const { run, layout, draft } = store.get();
  const { request } = useBuilt(collection, draft);
  const copied = request ?? run?.request;
  return (
    <header className={styles.resultHeader}>
      {run !== undefined && run.other === undefined && <ResultSummary result={first} />}
      <div className={styles.resultActions}>
        {LAYOUTS.map(({ layout: one, label, icon }) => (
          <IconButton
            key={one}
            icon={icon}
            label={label}
            aria-pressed={layout === one}
            className={styles.toggle}
            onClick={() => change({ layout: one })}
          />
        ))}
        <Button icon={Code} disabled={copied === undefined} onClick={() => setCopying(true)}>
          Copy as
        </Button>
      </div>
      {copied !== undefined && (
        <CopyDialog
          collectionId={collection.id}
          request={copied}
          isOpen={isCopying}
          onClose={() => setCopying(false)}
        />
      )}
    </header>
  );
}

/** The requests of both queries, and the replies. */
function RequestPanes({ collection, store, change, first, second, run, setProblem }: ResultsProps) {
  const { draft, other, requestText, otherText, run: lastRun } = store.get();
  const shared = { collection, onRun: run };
  const onText = (text: string, members: 'draft' | 'other') => {
    const { object } = parseObject(text);
    setProblem(undefined);
    change({
      [members === 'draft' ? 'requestText' : 'otherText']: text,
      ...(object !== undefined && { [members]: readRequest(collection, object) }),
    });
  };
  return (
    <>
      <RequestPane
        {...shared}
        built={useBuilt(collection, draft)}
        text={requestText}
        onText={(text) => onText(text, 'draft')}
        result={first}
        ran={lastRun?.request}
      />
      {other !== undefined && (
        <OtherPane
          {...shared}
          draft={other}
          text={otherText}
          onText={(text) => onText(text, 'other')}
          result={second}
          ran={lastRun?.other}
        />
      )}
    </>
  );
}

type OtherPaneProps = Omit<RequestPaneProps, 'built'> & { readonly draft: QueryDraft };

function OtherPane({ draft, ...rest }: OtherPaneProps) {
  return <RequestPane {...rest} built={useBuilt(rest.collection, draft)} />;
}
