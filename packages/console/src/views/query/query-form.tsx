// The form of one query: the box, the filter, and everything else behind "More".

import type { CollectionRecord } from '@sagitta/client';
import { SlidersHorizontal } from 'lucide-react';
import { useId } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { Button } from '../../ui/button.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { MoreFields } from './more-fields.js';
import styles from './query.module.css';
import { QueryBox } from './query-box.js';
import { changed, newDraft, type QueryDraft, type Ranking } from './query-draft.js';
import { kindOf } from './query-request.js';
import { ExampleFields } from './ranking-fields.js';
import { useStored } from './use-rows.js';

interface QueryFormProps {
  readonly collection: CollectionRecord;
  readonly draft: QueryDraft;
  /** Distinguishes the two forms of a comparison. */
  readonly name: 'first' | 'second';
  /** What the server refused, by JSON pointer. */
  readonly errors: ReadonlyMap<string, string>;
  readonly isMoreShown: boolean;
  readonly onMoreShown: (isShown: boolean) => void;
  readonly onChange: (draft: QueryDraft) => void;
  readonly onRun: () => void;
}

export function QueryForm(props: QueryFormProps) {
  const { collection, draft, name, errors, isMoreShown, onMoreShown, onChange, onRun } = props;
  const moreId = useId();
  const [first, ...rest] = draft.rankings;
  const isStored = useStored(collection.id, first!.input) != null;
  if (draft.custom !== undefined) {
    return <CustomNote onReset={() => onChange(newDraft(collection))} />;
  }
  const by = kindOf(collection, first!, isStored);
  const setFirst = (ranking: Ranking) => onChange({ ...draft, rankings: [ranking, ...rest] });
  const errorOf = (pointer: string) => errors.get(pointer);
  const setCount = countOfSettings(collection, draft);
  return (
    <div className={styles.form}>
      <QueryBox
        collection={collection}
        ranking={first!}
        error={errorIn(errors, rest.length > 0 || by === 'hybrid' ? FUSED_INPUTS : [`/${by}`])}
        hasFocusAtFirst={name === 'second' || first!.input === ''}
        onChange={setFirst}
        onRun={onRun}
      />
      <ExampleFields
        collection={collection}
        ranking={first!}
        by={by}
        errorOf={(member) => errorOf(`/${member}`)}
        onChange={setFirst}
      />
      <FilterEditor
        collection={collection}
        value={draft.options.filter}
        onChange={(filter) => onChange({ ...draft, options: changed(draft.options, { filter }) })}
        draftKey={`query ${name}`}
      />
      <div>
        <Button
          icon={SlidersHorizontal}
          aria-expanded={isMoreShown}
          aria-controls={isMoreShown ? moreId : undefined}
          onClick={() => onMoreShown(!isMoreShown)}
        >
          {setCount === 0 ? 'More' : `More (${setCount} set)`}
        </Button>
      </div>
      {isMoreShown && (
        <div id={moreId}>
          <MoreFields
            collection={collection}
            draft={draft}
            by={by}
            name={name}
            errorOf={errorOf}
            onChange={onChange}
          />
        </div>
      )}
    </div>
  );
}

/** Where the input of the first ranking is in a fusion, whatever its kind. */
const FUSED_INPUTS = [
  ...['id', 'vector', 'text', 'embed', 'multi_vector', 'sparse'].map(
    (member) => `/fusion/parts/0/${member}`,
  ),
  '/fusion/parts/1/embed',
];

/** The first error at one of the pointers or inside. */
function errorIn(errors: ReadonlyMap<string, string>, pointers: readonly string[]) {
  for (const [pointer, detail] of errors) {
    if (pointers.some((one) => pointer === one || pointer.startsWith(`${one}/`))) return detail;
  }
  return undefined;
}

/** The number of settings behind "More" that differ from those of a new query. */
function countOfSettings(collection: CollectionRecord, draft: QueryDraft): number {
  const usual = newDraft(collection);
  const { filter: _, ...options } = { ...usual.options, ...draft.options } as QueryDraft['options'];
  const differing = Object.entries(options).filter(
    ([name]) =>
      stringifyExactJson(draft.options[name as never]) !==
      stringifyExactJson(usual.options[name as never]),
  );
  const [first, ...more] = draft.rankings;
  const ofRanking = [first?.using, first?.metric, first?.match, draft.prefetch].filter(
    (one) => one !== undefined,
  );
  return differing.length + ofRanking.length + more.length + Object.keys(draft.fusion).length;
}

function CustomNote({ onReset }: { readonly onReset: () => void }) {
  return (
    <div className={styles.custom} role="note">
      <p>
        <strong>Custom request.</strong> The form cannot show this query. It is run as it is written
        in the request pane.
      </p>
      <div>
        <Button onClick={onReset}>Start a new query</Button>
      </div>
    </div>
  );
}
