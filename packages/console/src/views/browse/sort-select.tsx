// Chooses the order of cards, which have no header to click on.

import { Select } from '../../ui/field.js';
import type { SortState } from '../vectors/table-header.js';
import { ID_COLUMN } from '../vectors/vector-columns.js';
import styles from './browse.module.css';
import { PICTURE_KEY, VALUES_KEY } from './browse-state.js';

interface SortSelectProps {
  /** The keys of the columns after the id. */
  readonly columns: readonly string[];
  readonly sort: SortState | undefined;
  readonly onChange: (sort: SortState | undefined) => void;
}

export function SortSelect({ columns, sort, onChange }: SortSelectProps) {
  const paths = columns.filter((key) => key !== PICTURE_KEY && key !== VALUES_KEY);
  // A column that is no longer shown may still determine the order.
  const keys = new Set([ID_COLUMN.key, ...paths, ...(sort === undefined ? [] : [sort.key])]);
  const sorts = [...keys].flatMap((key) => [
    { key, isDescending: false },
    { key, isDescending: true },
  ]);
  const indexOf = (found: SortState) =>
    sorts.findIndex(
      ({ key, isDescending }) => key === found.key && isDescending === found.isDescending,
    );
  return (
    <Select
      className={styles.sort}
      aria-label="Sort by"
      value={sort === undefined ? '' : String(indexOf(sort))}
      options={[
        { value: '', label: 'Not sorted' },
        ...sorts.map((each, at) => ({ value: String(at), label: labelOf(each) })),
      ]}
      onChange={(value) => onChange(value === '' ? undefined : sorts[Number(value)])}
    />
  );
}

function labelOf({ key, isDescending }: SortState): string {
  const name = key === ID_COLUMN.key ? ID_COLUMN.label : key;
  return `${name}, ${isDescending ? 'descending' : 'ascending'}`;
}
