// Draws the points of the map with WebGL 2: one program, one buffer per property, and the palette as a texture.
// Changed positions or flags are uploaded without the other properties. Where points cover each other, they are so
// transparent that the colour becomes deeper with their density.

import type { Camera, ViewSize } from './camera.js';

const VERTEX_SHADER = `#version 300 es
in vec2 position;
in uint entry;
in uint flags;
in float density;
uniform vec2 centre;
uniform vec2 unit;
uniform float diameter;
uniform uint pass;
uniform bool dims;
// The area of the plane that a point covers, and the highest density of all points.
uniform float pointArea;
uniform float densityMax;
uniform sampler2D palette;
out vec4 colour;
flat out uint mark;

// The opacity with which the points at one place together reach the opacity of its density.
float opacity() {
  float most = densityMax * pointArea;
  float lone = mix(0.85, 0.5, clamp((most - 1.0) / 6.0, 0.0, 1.0));
  float covering = density * pointArea;
  if (covering <= 1.0) return lone;
  float together = mix(lone, 0.97, sqrt(covering / most));
  return max(0.03, 1.0 - pow(1.0 - together, 1.0 / covering));
}

void main() {
  mark = (flags >> 1) & 3u;
  bool isMarked = mark != 0u;
  bool isShown = (flags & 1u) == 0u && isMarked == (pass == 1u);
  gl_Position = isShown ? vec4((position - centre) * unit, 0.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = isMarked ? diameter + 2.0 : diameter;
  colour = texelFetch(palette, ivec2(int(entry), 0), 0);
  colour.a = dims ? min(0.2, opacity()) : opacity();
}`;

const FRAGMENT_SHADER = `#version 300 es
precision highp float;
in vec4 colour;
flat in uint mark;
uniform vec3 selectionRing;
uniform vec3 matchRing;
uniform float diameter;
uniform float ringWidth;
out vec4 pixel;
void main() {
  bool isMarked = mark != 0u;
  bool isMatch = mark == 2u;
  float size = isMarked ? diameter + 2.0 : diameter;
  float radius = length(gl_PointCoord - 0.5) * size;
  float coverage = clamp(size * 0.5 - radius + 0.5, 0.0, 1.0);
  bool isRing = isMarked && radius > size * 0.5 - ringWidth * (isMatch ? 2.0 : 1.0);
  vec3 rgb = isRing ? (isMatch ? matchRing : selectionRing) : colour.rgb;
  float alpha = coverage * (isMarked ? 1.0 : colour.a);
  pixel = vec4(rgb * alpha, alpha);
}`;

interface PointFrame {
  readonly camera: Camera;
  readonly size: ViewSize;
  /** CSS pixels. */
  readonly diameter: number;
  /** Whether points that are neither selected nor found are drawn faintly. */
  readonly dims: boolean;
  /** The colours around selected and found points, each part in [0, 1]. */
  readonly rings: Readonly<Record<'selection' | 'match', readonly [number, number, number]>>;
  /** The highest density of all points. */
  readonly densityMax: number;
}

export interface PointRenderer {
  /** Row-major [pointCount, 2]. */
  setPositions(positions: Float32Array): void;
  /** Palette entries, [pointCount]. */
  setEntries(entries: Uint8Array): void;
  /** Bits, [pointCount]: 1 hidden, 2 selected, 4 found. */
  setFlags(flags: Uint8Array): void;
  /** Points per unit of area around each point, [pointCount]. */
  setDensities(densities: Float32Array): void;
  /** RGBA of 256 entries. */
  setPalette(palette: Uint8Array): void;
  draw(frame: PointFrame): void;
}

/** Undefined if the browser does not support WebGL 2. */
export function createPointRenderer(canvas: HTMLCanvasElement): PointRenderer | undefined {
  const gl = canvas.getContext('webgl2', { antialias: false, premultipliedAlpha: true });
  return gl === null ? undefined : rendererOf(gl, canvas);
}

function rendererOf(gl: WebGL2RenderingContext, canvas: HTMLCanvasElement): PointRenderer {
  const program = linkProgram(gl);
  // biome-ignore lint/correctness/useHookAtTopLevel: a method of WebGL, not a hook
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  const positions = createAttribute(gl, program, 'position');
  const entries = createAttribute(gl, program, 'entry');
  const flags = createAttribute(gl, program, 'flags');
  const densities = createAttribute(gl, program, 'density');
  createPaletteTexture(gl);
  const uniforms = uniformsOf(gl, program);
  let pointCount = 0;
  return {
    setPositions(values) {
      pointCount = values.length / 2;
      positions(values, (at) => gl.vertexAttribPointer(at, 2, gl.FLOAT, false, 0, 0));
    },
    setEntries: (values) =>
      entries(values, (at) => gl.vertexAttribIPointer(at, 1, gl.UNSIGNED_BYTE, 0, 0)),
    setFlags: (values) =>
      flags(values, (at) => gl.vertexAttribIPointer(at, 1, gl.UNSIGNED_BYTE, 0, 0)),
    setDensities: (values) =>
      densities(values, (at) => gl.vertexAttribPointer(at, 1, gl.FLOAT, false, 0, 0)),
    setPalette(palette) {
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, palette);
    },
    draw({ camera, size, diameter, dims, rings, densityMax }) {
      const ratio = resize(canvas, size);
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2f(uniforms.centre, camera.x, camera.y);
      gl.uniform2f(
        uniforms.unit,
        (2 * camera.scale) / size.width,
        (2 * camera.scale) / size.height,
      );
      gl.uniform1f(uniforms.diameter, diameter * ratio);
      gl.uniform1f(uniforms.ringWidth, ratio);
      gl.uniform1i(uniforms.dims, dims ? 1 : 0);
      gl.uniform1f(uniforms.pointArea, Math.PI * (diameter / 2 / camera.scale) ** 2);
      gl.uniform1f(uniforms.densityMax, densityMax);
      gl.uniform3f(uniforms.selectionRing, ...rings.selection);
      gl.uniform3f(uniforms.matchRing, ...rings.match);
      // Marked points are drawn over the others.
      for (const pass of dims ? [0, 1] : [0]) {
        gl.uniform1ui(uniforms.pass, pass);
        gl.drawArrays(gl.POINTS, 0, pointCount);
      }
    },
  };
}

function uniformsOf(gl: WebGL2RenderingContext, program: WebGLProgram) {
  const uniform = (name: string) => gl.getUniformLocation(program, name);
  return {
    centre: uniform('centre'),
    unit: uniform('unit'),
    diameter: uniform('diameter'),
    ringWidth: uniform('ringWidth'),
    pass: uniform('pass'),
    dims: uniform('dims'),
    selectionRing: uniform('selectionRing'),
    matchRing: uniform('matchRing'),
    pointArea: uniform('pointArea'),
    densityMax: uniform('densityMax'),
  };
}

/** Matches the canvas to the screen's pixels; returns the number of pixels per CSS pixel. */
function resize(canvas: HTMLCanvasElement, { width, height }: ViewSize): number {
  const ratio = window.devicePixelRatio || 1;
  const [pixelWidth, pixelHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixelWidth) canvas.width = pixelWidth;
  if (canvas.height !== pixelHeight) canvas.height = pixelHeight;
  return ratio;
}

function createAttribute(gl: WebGL2RenderingContext, program: WebGLProgram, name: string) {
  const location = gl.getAttribLocation(program, name);
  const buffer = gl.createBuffer();
  return (values: Float32Array | Uint8Array, describe: (location: number) => void) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    gl.enableVertexAttribArray(location);
    describe(location);
  };
}

function createPaletteTexture(gl: WebGL2RenderingContext): void {
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
}

function linkProgram(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX_SHADER],
    [gl.FRAGMENT_SHADER, FRAGMENT_SHADER],
  ] as const) {
    const shader = gl.createShader(kind)!;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(`the program of the map does not link: ${gl.getProgramInfoLog(program)}`);
  }
  return program;
}
