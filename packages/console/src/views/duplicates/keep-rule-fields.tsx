// Chooses the rule for the member to keep in groups where the user has not chosen one.

import type { CollectionRecord } from '@sagitta/client';
import { useFoundPaths } from '../../api/queries.js';
import { useStore } from '../../api/store.js';
import { SelectField } from '../../ui/field.js';
import { keepRuleOf } from './duplicate-search.js';
import styles from './duplicates.module.css';
import type { KeepRule } from './keep-rules.js';

const RULES = [
  { value: 'first', label: 'The one written first' },
  { value: 'last', label: 'The one written last' },
  { value: 'greatest', label: 'The largest value of…' },
  { value: 'least', label: 'The smallest value of…' },
] as const satisfies readonly { value: KeepRule['kind']; label: string }[];

export function KeepRuleFields({ collection }: { readonly collection: CollectionRecord }) {
  const store = keepRuleOf(collection.id);
  const rule = useStore(store);
  const { data: found = [] } = useFoundPaths(collection.id);
  const paths = found
    .filter(({ types }) => types.number + types.string + types.boolean > 0)
    .map(({ path }) => path);
  const path = 'path' in rule ? rule.path : paths[0];
  const choose = (kind: KeepRule['kind'], chosen: string | undefined) => {
    if (kind === 'first' || kind === 'last') store.set({ kind });
    else if (chosen !== undefined) store.set({ kind, path: chosen });
  };
  return (
    <div className={styles.rule}>
      <SelectField
        label="Keep in each group"
        value={rule.kind}
        options={RULES.filter(
          ({ value }) => value === 'first' || value === 'last' || paths.length > 0,
        )}
        onChange={(kind) => choose(kind, path)}
      />
      {'path' in rule && (
        <SelectField
          label="Metadata"
          value={rule.path}
          options={paths.map((value) => ({ value, label: value }))}
          onChange={(value) => choose(rule.kind, value)}
        />
      )}
    </div>
  );
}
