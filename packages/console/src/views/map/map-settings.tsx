// The settings of the map: size and seed of the sample, filter, and neighbours for the layout.

import type { CollectionRecord, DenseVector } from '@sagitta/client';
import { ChevronDown, Filter, RefreshCw } from 'lucide-react';
import { useMembers } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { TextField } from '../../ui/field.js';
import { FilterEditor } from '../filter/filter-editor.js';
import { VectorSelect } from '../vector-fields.js';
import styles from './map.module.css';
import { draftErrors, mapDraftOf } from './map-state.js';

interface MapSettingsProps {
  readonly collection: CollectionRecord;
  readonly vectors: readonly DenseVector[];
  readonly using: string;
  /** Whether the settings have changed since the map was drawn. */
  readonly isStale: boolean;
  readonly isBusy: boolean;
  readonly onLoad: () => void;
}

export function MapSettings(props: MapSettingsProps) {
  const { collection, vectors, using, isStale, isBusy, onLoad } = props;
  const [draft, change] = useMembers(mapDraftOf(collection.id));
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
          <VectorSelect
            vectors={vectors}
            using={using}
            onChange={(name) => change({ using: name })}
          />
          <TextField
            label="Maximum number of vectors"
            inputMode="numeric"
            value={draft.sampleText}
            error={errors.sample}
            onChange={(sampleText) => change({ sampleText })}
          />
          <TextField
            label="Seed of the sample"
            inputMode="numeric"
            value={draft.seedText}
            error={errors.seed}
            onChange={(seedText) => change({ seedText })}
          />
          <TextField
            label="Neighbours for UMAP"
            inputMode="numeric"
            value={draft.neighborsText}
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
