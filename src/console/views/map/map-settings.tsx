// Which vectors the map shows: the size and seed of the sample, the filter, and how it is laid out.

import { ChevronDown, Filter, RefreshCw } from 'lucide-react';
import type { CollectionRecord } from '../../../client/client.js';
import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { SelectField, TextField } from '../../ui/field.js';
import { type DenseVector, labelOf } from '../dense-vectors.js';
import { FilterEditor } from '../filter/filter-editor.js';
import styles from './map.module.css';
import { draftErrors, type MapDraft, mapDraftOf } from './map-state.js';

interface MapSettingsProps {
  readonly collection: CollectionRecord;
  readonly vectors: readonly DenseVector[];
  readonly using: string;
  /** The settings are not those of the map that is shown. */
  readonly isStale: boolean;
  readonly isBusy: boolean;
  readonly onLoad: () => void;
}

export function MapSettings(props: MapSettingsProps) {
  const { collection, vectors, using, isStale, isBusy, onLoad } = props;
  const store = mapDraftOf(collection.id);
  const draft = useStore(store);
  const change = (part: Partial<MapDraft>) => store.set({ ...store.get(), ...part });
  const errors = draftErrors(draft);
  const isReady = Object.keys(errors).length === 0;
  return (
    <details className={styles.settings}>
      <summary>
        <Filter size={15} aria-hidden />
        Sample and filter
        <ChevronDown size={14} aria-hidden />
      </summary>
      <form
        className={styles.settingsForm}
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) onLoad();
        }}
      >
        <div className={styles.settingsFields}>
          {vectors.length > 1 && (
            <SelectField
              label="Vector"
              value={using}
              options={vectors.map((vector) => ({
                value: vector.name,
                label: labelOf(vector),
              }))}
              onChange={(name) => change({ using: name })}
            />
          )}
          <NumberField
            label="Vectors at most"
            text={draft.sampleText}
            error={errors.sample}
            onChange={(sampleText) => change({ sampleText })}
          />
          <NumberField
            label="Seed of the sample"
            text={draft.seedText}
            error={errors.seed}
            onChange={(seedText) => change({ seedText })}
          />
          <NumberField
            label="Neighbours for UMAP"
            text={draft.neighborsText}
            error={errors.neighbors}
            onChange={(neighborsText) => change({ neighborsText })}
          />
        </div>
        <FilterEditor
          collection={collection}
          value={draft.filter}
          draftKey="map"
          onChange={(filter) => change({ filter })}
        />
        <div>
          <Button
            type="submit"
            kind={isStale ? 'primary' : 'plain'}
            icon={RefreshCw}
            isBusy={isBusy}
            disabled={!isReady}
          >
            Draw the map
          </Button>
        </div>
      </form>
    </details>
  );
}

interface NumberFieldProps {
  readonly label: string;
  readonly text: string;
  readonly error: string | undefined;
  readonly onChange: (text: string) => void;
}

function NumberField({ label, text, error, onChange }: NumberFieldProps) {
  return (
    <TextField label={label} error={error} inputMode="numeric" value={text} onChange={onChange} />
  );
}
