// Chooses scopes, explains what each permits, and limits them to collections by globs, showing the matching
// collections.

import { SCOPE_MEANINGS, SCOPES } from '../../../../../src/common/access.js';
import { useCollections } from '../../api/queries.js';
import { Checkbox, FieldGroup, GroupError, TextField } from '../../ui/field.js';
import { canBeLimited, type GrantDraft, matchedBy, toggleScope } from './key-draft.js';
import styles from './keys.module.css';

interface ScopePickerProps {
  readonly grants: readonly GrantDraft[];
  readonly onChange: (grants: readonly GrantDraft[]) => void;
  readonly error: string | undefined;
}

const NAMED_MAX = 5;

export function ScopePicker({ grants, onChange, error }: ScopePickerProps) {
  const setGlobs = (changed: GrantDraft) =>
    onChange(grants.map((grant) => (grant.scope === changed.scope ? changed : grant)));
  return (
    <FieldGroup label="Scopes">
      {SCOPES.map((scope) => {
        const grant = grants.find((each) => each.scope === scope);
        return (
          <div key={scope} className={styles.scope}>
            <Checkbox
              label={
                <>
                  <code>{scope}</code>{' '}
                  <span className={styles.meaning}>{SCOPE_MEANINGS[scope]}</span>
                </>
              }
              isChecked={grant !== undefined}
              onChange={(isChosen) => onChange(toggleScope(grants, scope, isChosen))}
            />
            {grant !== undefined && canBeLimited(scope) && (
              <GlobInput grant={grant} onChange={setGlobs} />
            )}
          </div>
        );
      })}
      <GroupError error={error} />
    </FieldGroup>
  );
}

interface GlobInputProps {
  readonly grant: GrantDraft;
  readonly onChange: (grant: GrantDraft) => void;
}

function GlobInput({ grant, onChange }: GlobInputProps) {
  const { data: collections = [] } = useCollections();
  const ids = collections.map(({ id }) => id);
  return (
    <div className={styles.globs}>
      <TextField
        label={`Collections of ${grant.scope}`}
        isLabelHidden
        hint={describeMatches(grant.globs, matchedBy(grant.globs, ids))}
        placeholder="all collections, or for example catalog-* docs"
        value={grant.globs}
        onChange={(globs) => onChange({ ...grant, globs })}
      />
    </div>
  );
}

function describeMatches(globs: string, matches: readonly string[]): string {
  if (globs.trim() === '') return 'All collections, including future ones.';
  if (matches.length === 0) return 'Matches no existing collection.';
  const named = matches.slice(0, NAMED_MAX).join(', ');
  const otherCount = matches.length - NAMED_MAX;
  return `Matches ${named}${otherCount > 0 ? ` and ${otherCount} more` : ''}, and future ones.`;
}
