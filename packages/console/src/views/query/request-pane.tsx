// The request of a query as JSON, exactly as it is sent, and the reply. The request can be edited and pasted.

import { type CollectionRecord, type QueryRequest, SagittaClientError } from '@sagitta/client';
import { Play } from 'lucide-react';
import { useId, useMemo, useRef } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { describeError } from '../../api/describe-error.js';
import { Button } from '../../ui/button.js';
import { classNames } from '../../ui/class-names.js';
import { CopyButton } from '../../ui/copy-button.js';
import fieldStyles from '../../ui/field.module.css';
import { parseObject } from '../filter/filter-values.js';
import { formatJson, lineOfPart } from './json-text.js';
import styles from './query.module.css';
import type { BuiltRequest } from './query-request.js';
import type { Matches } from './use-matches.js';

export interface RequestPaneProps {
  readonly collection: CollectionRecord;
  /** The request of the form, or what it lacks. */
  readonly built: BuiltRequest;
  /** What was typed here, until the form changes. */
  readonly text: string | undefined;
  readonly onText: (text: string) => void;
  readonly onRun: () => void;
  readonly result: Matches;
  /** The request that was run last. */
  readonly ran: QueryRequest | undefined;
}

export function RequestPane(props: RequestPaneProps) {
  const { collection, built, text, onText, onRun, result, ran } = props;
  const { problem = built.problem } = text === undefined ? {} : parseObject(text);
  const request = problem === undefined ? built.request : undefined;
  const isCurrent =
    request !== undefined && stringifyExactJson(request) === stringifyExactJson(ran);
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const formatted = request === undefined ? '' : formatJson(request as never);
  const shown = text ?? formatted;
  const rows = Math.min(ROWS_MAX, Math.max(ROWS_MIN, shown.split('\n').length));
  const error = isCurrent ? result.error : undefined;
  return (
    <div className={styles.pane}>
      <section className={styles.paneSide} aria-labelledby={`${id}-request`}>
        <header className={styles.paneHeader}>
          <h2 id={`${id}-request`}>Request</h2>
          <code className={styles.paneRoute}>POST /collections/{collection.id}/query</code>
          <CopyButton text={shown} label="Copy the request" />
          <Button kind="primary" icon={Play} onClick={onRun} aria-keyshortcuts="Control+Enter">
            Run
          </Button>
        </header>
        <textarea
          ref={area}
          aria-label="The request as JSON"
          aria-describedby={`${id}-problem`}
          aria-invalid={problem !== undefined && text !== undefined}
          className={classNames(fieldStyles.control, fieldStyles.area, styles.paneText)}
          rows={rows}
          spellCheck={false}
          placeholder={'{ "text": { "query": "small animals" }, "limit": 10 }'}
          value={shown}
          onChange={(event) => onText(event.target.value)}
        />
        {/* Not an alert, since it changes with every key; running the query reports it. */}
        <p id={`${id}-problem`} className={text === undefined ? styles.note : styles.problem}>
          {problem}
        </p>
        <div role="alert" className={styles.paneProblems}>
          {error !== undefined && (
            <Problems
              error={error}
              request={request}
              onLine={(line) => selectLine(area.current, line)}
            />
          )}
        </div>
      </section>
      <Reply result={result} id={id} isCurrent={isCurrent} />
    </div>
  );
}

const ROWS_MIN = 8;
/** Longer requests scroll. */
const ROWS_MAX = 24;

interface ProblemsProps {
  readonly error: unknown;
  readonly request: QueryRequest | undefined;
  readonly onLine: (line: number) => void;
}

/** What the server refused, with the lines of the request. */
function Problems({ error, request, onLine }: ProblemsProps) {
  const items = error instanceof SagittaClientError ? error.items : [];
  if (items.length === 0 || request === undefined) return <p>{describeError(error).detail}</p>;
  return (
    <ul>
      {items.slice(0, ITEMS_MAX).map(({ pointer, detail }) => {
        const line = lineOfPart(request as never, pointer);
        return (
          <li key={`${pointer} ${detail}`}>
            <button type="button" className={styles.textButton} onClick={() => onLine(line)}>
              Line {line}
            </button>{' '}
            {pointer !== '' && <code>{pointer}</code>} {detail}
          </li>
        );
      })}
    </ul>
  );
}

/** More problems do not help. */
const ITEMS_MAX = 8;

function selectLine(area: HTMLTextAreaElement | null, line: number): void {
  if (area === null) return;
  const lines = area.value.split('\n');
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
}

/** A longer reply would make the page slow; the rest is copied. */
const REPLY_CHARACTERS_MAX = 200_000;

interface ReplyProps {
  readonly result: Matches;
  readonly id: string;
  readonly isCurrent: boolean;
}

function Reply({ result, id, isCurrent }: ReplyProps) {
  const reply = result.first?.reply;
  const text = useMemo(
    () => (reply === undefined ? undefined : formatJson(reply as never)),
    [reply],
  );
  return (
    <section className={styles.paneSide} aria-labelledby={`${id}-reply`}>
      <header className={styles.paneHeader}>
        <h2 id={`${id}-reply`}>Reply</h2>
        {text !== undefined && !isCurrent && (
          <span className={styles.note}>to the last request that was run</span>
        )}
        {text !== undefined && <CopyButton text={text} label="Copy the reply" />}
      </header>
      {text === undefined ? (
        <p className={styles.note}>{noteOf(result)}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
        <section className={styles.reply} tabIndex={0} aria-label="The reply as JSON">
          <pre>
            {text.slice(0, REPLY_CHARACTERS_MAX)}
            {text.length > REPLY_CHARACTERS_MAX && '\n…'}
          </pre>
        </section>
      )}
    </section>
  );
}

/** Why there is no reply. */
function noteOf({ isRunning, error }: Matches): string {
  if (isRunning) return 'Running…';
  return error === undefined ? 'Run the request to see it.' : 'The server refused the request.';
}
