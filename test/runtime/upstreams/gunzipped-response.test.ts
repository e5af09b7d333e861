/** Gzip responses for clients that did not accept gzip. The responses are complete, empty, in pieces, truncated, or not gzip. */
import { gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Body, BodySource } from '../../../compiler/exchange/body.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { gunzipResponse } from '../../../runtime/upstreams/gunzipped-response.ts';
import { readBody } from './scripted-upstream.ts';

const test = suite('gunzipped responses');

async function gunzippedText(body: Body): Promise<string> {
	const headers = new HeaderList(['Content-Encoding', 'GZIP', 'Content-Length', '9']);
	const response = gunzipResponse({ status: 200, headers, body, protocol: 'HTTP/1.1', upgradedStream: undefined });
	return readBody(response.body);
}

function piecesOf(pieces: readonly Uint8Array[]): BodySource {
	let next = 0;
	return { length: undefined, pull: () => pieces[next++] ?? null, cancel() {} };
}

const packed = gzipSync('what is in it');

test('a gzip body is decoded at once, byte by byte, and with two members', async () => {
	assert.is(await gunzippedText(packed), 'what is in it');
	assert.is(await gunzippedText(piecesOf([...packed].map(byte => Buffer.from([byte])))), 'what is in it');
	assert.is(await gunzippedText(Buffer.concat([packed, gzipSync(', and more')])), 'what is in it, and more');
});

test('an empty body stays empty', async () => {
	assert.is(await gunzippedText(null), '');
	assert.is(await gunzippedText(Buffer.alloc(0)), '');
	assert.is(await gunzippedText(piecesOf([])), '');
});

test('a body that is not gzip is forwarded unchanged', async () => {
	assert.is(await gunzippedText(piecesOf([Buffer.from('plain '), Buffer.from('text')])), 'plain text');
});

test('a truncated body throws', async () => {
	let failed = false;
	await gunzippedText(packed.subarray(0, -4)).catch(() => {
		failed = true;
	});
	assert.ok(failed);
});

test.run();
