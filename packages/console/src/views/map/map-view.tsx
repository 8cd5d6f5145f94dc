// The map of a collection: a sample of its vectors in two dimensions, first by their principal components and then
// by UMAP as it converges.

import { denseVectors } from '@sagitta/client';
import { useEffect } from 'react';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { PageContent } from '../../ui/panel.js';
import { Empty, ErrorMessage } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import styles from './map.module.css';
import { MapSettings } from './map-settings.js';
import { MapSkeleton } from './map-skeleton.js';
import { mapDraftOf, mapStateOf, requestOf } from './map-state.js';
import { ReadyMap } from './ready-map.js';
import { useMap } from './use-map.js';

export default function MapView({ collection }: CollectionViewProps) {
  const vectors = denseVectors(collection);
  const draft = useStore(mapDraftOf(collection.id));
  const state = useStore(mapStateOf(collection.id));
  const actions = useMap(collection);
  const using = (vectors.find(({ name }) => name === draft.using) ?? vectors[0])?.name ?? '';
  const isEmpty = vectors.length === 0 || collection.vector_count === 0;
  const load = () => actions.load(requestOf(draft, using));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first map is drawn automatically
  useEffect(() => {
    if (!isEmpty && mapStateOf(collection.id).get().kind === 'none') load();
  }, []);
  if (isEmpty) {
    return (
      <>
        <h1 className="visually-hidden">Map of {collection.id}</h1>
        <Empty title="Nothing to show on the map">
          <p>The map shows dense vectors, and this collection has none.</p>
        </Empty>
      </>
    );
  }
  const request = state.kind === 'ready' ? state.data.request : undefined;
  const isStale = stringifyExactJson(request) !== stringifyExactJson(requestOf(draft, using));
  return (
    <div className={styles.view}>
      <h1 className="visually-hidden">Map of {collection.id}</h1>
      <MapSettings
        collection={collection}
        vectors={vectors}
        using={using}
        isStale={isStale}
        isBusy={state.kind === 'loading'}
        onLoad={load}
      />
      {state.kind === 'loading' && (
        <MapSkeleton collection={collection} progress={state.progress} onStop={actions.stop} />
      )}
      {state.kind === 'none' && (
        <Empty title="The map has not been drawn">
          <Button onClick={load}>Draw the map</Button>
        </Empty>
      )}
      {state.kind === 'failed' && (
        <PageContent>
          <ErrorMessage error={state.error} onRetry={load} />
        </PageContent>
      )}
      {state.kind === 'ready' && state.data.ids.length === 0 && (
        <Empty title="No vectors match the filter" />
      )}
      {state.kind === 'ready' && state.data.ids.length > 0 && (
        <ReadyMap
          collection={collection}
          data={state.data}
          layout={state.layout}
          actions={actions}
        />
      )}
    </div>
  );
}
