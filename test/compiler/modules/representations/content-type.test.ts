/** Content types by extension. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { contentType } from '../../../../compiler/modules/representations/content-type.ts';

const types = suite('content types');
const TYPE_CASES: readonly [path: string, type: string | undefined][] = [
	['/a/index.html', 'text/html; charset=utf-8'],
	['/a.HTML', 'text/html; charset=utf-8'],
	['/a.css', 'text/css; charset=utf-8'],
	['/a.js', 'text/javascript; charset=utf-8'],
	['/a.mjs', 'text/javascript; charset=utf-8'],
	['/a.txt', 'text/plain; charset=utf-8'],
	['/a.md', 'text/markdown; charset=utf-8'],
	['/a.xml', 'text/xml; charset=utf-8'],
	['/a.json', 'application/json'],
	['/a.webmanifest', 'application/manifest+json'],
	['/a.svg', 'image/svg+xml'],
	['/a.png', 'image/png'],
	['/a.jpg', 'image/jpeg'],
	['/a.webp', 'image/webp'],
	['/a.avif', 'image/avif'],
	['/a.ico', 'image/x-icon'],
	['/a.woff2', 'font/woff2'],
	['/a.wasm', 'application/wasm'],
	['/a.pdf', 'application/pdf'],
	['/a.mp4', 'video/mp4'],
	['/a.mp3', 'audio/mpeg'],
	['/a.zip', 'application/zip'],
	['/a.tar.gz', 'application/gzip'],
	['/a.unknown-extension', undefined],
	['/a', undefined],
	['/a.d/b', undefined],
	['/a.', undefined],
	['/a.constructor', undefined],
];
for (const [path, type] of TYPE_CASES) types(path, () => assert.is(contentType(path), type));
types.run();
