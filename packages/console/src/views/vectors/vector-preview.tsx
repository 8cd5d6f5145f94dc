// The picture and the text of a vector, for rows, cards and tooltips. For collections whose values form a picture,
// callers must also read the values.

import type { CollectionRecord } from '@sagitta/client';
import { useEffect, useRef, useState } from 'react';
import {
  findPictureUrl,
  greyPixels,
  pictureShape,
  previewText,
  previewTitle,
  type ShownVector,
} from './preview.js';
import styles from './vectors.module.css';

interface VectorPreviewProps {
  readonly collection: CollectionRecord;
  readonly vector: ShownVector;
}

interface VectorPreviewTextProps extends VectorPreviewProps {
  /** Whether the id replaces a missing title; true when absent. */
  readonly hasId?: boolean;
  /** The metadata path that names the vectors of the collection. */
  readonly titlePath?: string | undefined;
}

/** The picture, title and text of a vector, if it has them. */
export function VectorPreview(props: VectorPreviewTextProps) {
  const { collection, vector, hasId = true, titlePath } = props;
  const title = previewTitle(vector.metadata, titlePath) ?? (hasId ? vector.id : undefined);
  const text = previewText(vector.metadata, collection);
  return (
    <div className={styles.preview}>
      <VectorPicture collection={collection} vector={vector} isLarge />
      <div className={styles.previewText}>
        {title !== undefined && (
          <p className={styles.previewTitle} dir="auto">
            {title}
          </p>
        )}
        {text !== undefined && text !== title && (
          <p className={styles.previewBody} dir="auto">
            {text.slice(0, 400)}
          </p>
        )}
      </div>
    </div>
  );
}

interface VectorPictureProps extends VectorPreviewProps {
  readonly isLarge?: boolean;
}

/** Renders nothing if the vector has no picture. */
export function VectorPicture({ collection, vector, isLarge = false }: VectorPictureProps) {
  const shape = pictureShape(collection);
  const url = findPictureUrl(vector.metadata, location.origin);
  const [failedUrl, setFailedUrl] = useState<string>();
  const className = isLarge ? styles.pictureLarge : styles.picture;
  if (shape !== undefined && vector.values?.length === shape.width * shape.height) {
    return <GreyPicture values={vector.values} {...shape} className={className} id={vector.id} />;
  }
  if (url === undefined || url === failedUrl) return null;
  return (
    <img
      src={url}
      alt={`${previewTitle(vector.metadata) ?? vector.id}, from its metadata`}
      className={className}
      loading="lazy"
      decoding="async"
      onError={() => setFailedUrl(url)}
    />
  );
}

interface GreyPictureProps {
  readonly id: string;
  readonly values: ArrayLike<number>;
  readonly width: number;
  readonly height: number;
  readonly className: string | undefined;
}

function GreyPicture({ id, values, width, height, className }: GreyPictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current!.getContext('2d')!;
    context.putImageData(new ImageData(greyPixels(values), width, height), 0, 0);
  }, [values, width, height]);
  return (
    <canvas
      ref={canvas}
      width={width}
      height={height}
      className={className}
      role="img"
      aria-label={`Values of ${id} as a picture`}
    />
  );
}
