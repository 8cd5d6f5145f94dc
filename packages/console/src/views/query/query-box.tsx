// The first field of a query. It takes words, the id of a stored vector, numbers in any form, or a dropped row, and says
// how it reads them.

import type { CollectionRecord } from '@sagitta/client';
import { Dices, Play } from 'lucide-react';
import { type ClipboardEvent, type DragEvent, useEffect, useRef, useState } from 'react';
import { Button } from '../../ui/button.js';
import { Field, Select } from '../../ui/field.js';
import { SuggestInput } from '../../ui/suggest-input.js';
import { previewTitle } from '../vectors/preview.js';
import { isBase64, parseVector } from './parse-vector.js';
import styles from './query.module.css';
import { changed, type QueryBy, RANKINGS, type Ranking } from './query-draft.js';
import { kindOf } from './query-request.js';
import { rowInput } from './recognize-input.js';
import { hasMeaning, possibleRankings, searchedVector, wordsKind } from './searchable.js';
import { randomId, useRowSuggestions, useStored, useTitlePath } from './use-rows.js';

interface QueryBoxProps {
  readonly collection: CollectionRecord;
  readonly ranking: Ranking;
  /** What the server refused about the input. */
  readonly error: string | undefined;
  readonly hasFocusAtFirst: boolean;
  readonly onChange: (ranking: Ranking) => void;
  readonly onRun: () => void;
}

export function QueryBox(props: QueryBoxProps) {
  const { collection, ranking, onChange, onRun } = props;
  const stored = useStored(collection.id, ranking.input);
  const by = kindOf(collection, ranking, stored !== undefined && stored !== null);
  const titlePath = useTitlePath(collection.id);
  // Editing ends a kind that came with a link or a suggestion, but not one that the user chose here.
  const [chosenBy, setChosenBy] = useState<QueryBy>();
  const random = useRandom(collection, (id) => {
    onChange(changed(ranking, { input: id, by: 'id' }));
    onRun();
  });
  const title = stored ? previewTitle(stored.metadata, titlePath) : undefined;
  const isOfExamples = by === 'recommend' || by === 'discover';
  return (
    <div className={styles.box}>
      {!isOfExamples && (
        <Input
          {...props}
          by={by}
          isKindChosen={chosenBy !== undefined && chosenBy === ranking.by}
          title={title === ranking.input ? undefined : title}
        />
      )}
      <div className={styles.boxRow}>
        <KindSelect
          collection={collection}
          chosen={ranking.by}
          by={by}
          onChange={(next) => {
            setChosenBy(next);
            onChange(changed(ranking, { by: next }));
          }}
        />
        <Button kind="primary" icon={Play} onClick={onRun} aria-keyshortcuts="Control+Enter">
          Run
        </Button>
      </div>
      <div className={styles.spread}>
        <Button
          kind="quiet"
          icon={Dices}
          onClick={random.pick}
          isBusy={random.isBusy}
          disabled={collection.vector_count === 0}
          title="Query by a stored vector that is chosen at random"
        >
          One at random
        </Button>
        <span className={styles.shortcut}>
          <kbd>Ctrl Enter</kbd> runs the query
        </span>
      </div>
      {random.problem !== undefined && (
        <p className={styles.problem} role="alert">
          {random.problem}
        </p>
      )}
    </div>
  );
}

interface InputProps extends QueryBoxProps {
  readonly by: QueryBy;
  readonly isKindChosen: boolean;
  /** The title of the vector whose id the input is. */
  readonly title: string | undefined;
}

function Input(props: InputProps) {
  const { collection, ranking, by, title, onChange, onRun, hasFocusAtFirst } = props;
  const input = useRef<HTMLInputElement>(null);
  const [isActive, setActive] = useState(false);
  const suggestions = useRowSuggestions(collection, ranking.input, isActive && isForRows(by));
  useEffect(() => {
    if (hasFocusAtFirst) input.current?.focus();
  }, [hasFocusAtFirst]);
  const setInput = (text: string) => {
    const isOfWords = isForRows(by) && by !== 'id' && by !== wordsKind(collection);
    const isKept = props.isKindChosen || isOfWords;
    onChange(changed(ranking, { input: text, by: isKept ? ranking.by : undefined }));
  };
  const onPaste = (event: ClipboardEvent<HTMLInputElement>) => {
    const text = event.clipboardData.getData('text');
    // Browsers remove line breaks, which would join numbers.
    if (!/[\r\n]/.test(text) && !text.trim().startsWith('{')) return;
    event.preventDefault();
    const { value, selectionStart, selectionEnd } = event.currentTarget;
    const isWhole = selectionStart === 0 && selectionEnd === value.length;
    const before = value.slice(0, selectionStart ?? value.length);
    const after = value.slice(selectionEnd ?? value.length);
    setInput(isWhole ? rowInput(text) : `${before}${rowInput(text)}${after}`);
  };
  const onDrop = async (event: DragEvent) => {
    event.preventDefault();
    const text = await droppedText(event.dataTransfer);
    if (text === undefined) return;
    onChange(changed(ranking, { input: rowInput(text), by: undefined }));
    onRun();
  };
  const { hint, problem } = describeInput(collection, ranking, by, title);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the input inside is the alternative to dropping
    <div onDragOver={(event) => event.preventDefault()} onDrop={(event) => void onDrop(event)}>
      <Field label="Search for" hint={hint} error={props.error ?? problem}>
        {(control) => (
          <SuggestInput
            id={control.id}
            describedBy={control['aria-describedby']}
            isInvalid={control['aria-invalid'] === true}
            inputRef={input}
            className={styles.input}
            value={ranking.input}
            placeholder={placeholderOf(collection)}
            suggestions={suggestions.filter(({ value }) => value !== ranking.input)}
            onChange={setInput}
            onChoose={(id) => {
              onChange(changed(ranking, { input: id, by: 'id' }));
              onRun();
            }}
            onFocusChange={setActive}
            onPaste={onPaste}
            onKeyDown={(event) => {
              const isChoosing = event.currentTarget.getAttribute('aria-activedescendant') !== null;
              if (event.key !== 'Enter' || event.ctrlKey || event.metaKey || isChoosing) return;
              event.preventDefault();
              onRun();
            }}
          />
        )}
      </Field>
    </div>
  );
}

/** Whether suggestions of stored vectors help with the input. */
function isForRows(by: QueryBy): boolean {
  return by === 'id' || by === 'hybrid' || by === 'text' || by === 'embed';
}

interface KindSelectProps {
  readonly collection: CollectionRecord;
  /** Undefined if the input decides. */
  readonly chosen: QueryBy | undefined;
  readonly by: QueryBy;
  readonly onChange: (by: QueryBy | undefined) => void;
}

/** Shows how the input is read, and overrides it. */
function KindSelect({ collection, chosen, by, onChange }: KindSelectProps) {
  const recognized = chosen === undefined ? `: ${RANKINGS[by].toLowerCase()}` : '';
  const options: { readonly value: QueryBy | ''; readonly label: string }[] = [
    { value: '', label: `Automatic${recognized}` },
    ...possibleRankings(collection).map((value) => ({ value, label: RANKINGS[value] })),
  ];
  return (
    <Select<QueryBy | ''>
      aria-label="How the input is read"
      className={styles.kind}
      value={chosen ?? ''}
      options={options}
      onChange={(value) => onChange(value === '' ? undefined : value)}
    />
  );
}

function useRandom(collection: CollectionRecord, onPicked: (id: string) => void) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const pick = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      const id = await randomId(collection);
      if (id === undefined) setProblem('The collection has no vectors.');
      else onPicked(id);
    } catch (error) {
      setProblem(`No vector could be picked: ${(error as Error).message}`);
    } finally {
      setBusy(false);
    }
  };
  return { pick: () => void pick(), isBusy, problem };
}

/** The text or the file that was dropped. A file is a row or a vector; others are too large for a query. */
async function droppedText(data: DataTransfer): Promise<string | undefined> {
  const [file] = data.files;
  if (file === undefined) return data.getData('text') || undefined;
  return file.size <= DROPPED_BYTES_MAX ? file.text() : undefined;
}

const DROPPED_BYTES_MAX = 1_000_000;

function placeholderOf(collection: CollectionRecord): string {
  return wordsKind(collection) === undefined
    ? 'An id, a title, or the numbers of a vector'
    : 'Words, an id, or the numbers of a vector';
}

interface InputDescription {
  readonly hint: string;
  readonly problem?: string | undefined;
}

function describeInput(
  collection: CollectionRecord,
  { input, using }: Ranking,
  by: QueryBy,
  title: string | undefined,
): InputDescription {
  const fields = collection.text?.fields.join(', ') ?? '';
  switch (by) {
    case 'hybrid':
      return { hint: `Finds these words in ${fields}, and vectors of a similar meaning.` };
    case 'text':
      return {
        hint: `Finds these words in ${fields} (BM25).${hasMeaning(collection) ? '' : WITHOUT_MEANING}`,
      };
    case 'embed':
      return { hint: 'Finds vectors of a similar meaning.' };
    case 'id':
      if (input.trim() === '' && wordsKind(collection) === undefined)
        return { hint: WITHOUT_WORDS };
      return {
        hint: `${title === undefined ? '' : `Found: ${title}. `}The vector itself is not returned.`,
      };
    case 'vector':
      return describeVector(collection, input, using);
    case 'multi_vector':
      return { hint: 'A JSON array of vectors, such as [[0.5, 1], [0, 1]].' };
    case 'sparse':
      return { hint: 'JSON such as {"indices": [17, 40], "values": [1, 0.5]}.' };
    default:
      return { hint: '' };
  }
}

const WITHOUT_MEANING = ' To search by meaning too, give the collection an embedding model.';
const WITHOUT_WORDS =
  'Type an id or a title. To search by words, create a collection with a text index, or give this one an embedding model.';

function describeVector(
  collection: CollectionRecord,
  input: string,
  using: string | undefined,
): InputDescription {
  const dimension = searchedVector(collection, 'vector', using)?.dimension ?? 0;
  if (input.trim() === '') {
    return {
      hint: `${dimension} numbers: a JSON array, base64 of float32, or with any separators.`,
    };
  }
  const { problem } = parseVector(input, dimension);
  const form = isBase64(input.trim()) ? ', in base64' : '';
  return problem === undefined
    ? { hint: `All ${dimension} numbers of a vector${form}.` }
    : { hint: '', problem };
}
