/** `respond`: statuses, bodies, content types, Early Hints. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bodyText, buildTestSite, fakeExchange, responseLines, serveRequest } from '../../fake-exchange.ts';

const test = suite('respond');

test('a constant response is synchronous and sets its status, fields and body', () => {
	const x = fakeExchange();
	const result = buildTestSite([{ handler: 'respond', body: 'Hello, world.\n' }]).runSite(x);
	assert.is(result, undefined);
	assert.is(x.response.status, 200);
	assert.is(bodyText(x), 'Hello, world.\n');
	assert.equal(responseLines(x), ['Content-Type: text/plain; charset=utf-8']);
	assert.is(x.answeredBy, 'respond');
	assert.is(x.siteName, ':9080');
});

test('a response with only a status has no body and no content type', async () => {
	const x = await serveRequest([{ handler: 'respond', status: 204 }]);
	assert.is(x.response.status, 204);
	assert.is(x.response.body, null);
	assert.equal(responseLines(x), []);
});

test('JSON objects and arrays are sent as JSON; scalars and invalid JSON as text', async () => {
	const typeOf = async (body: string) =>
		(await serveRequest([{ handler: 'respond', body }])).response.headers.get('content-type');
	assert.is(await typeOf(' {"a":1}\n'), 'application/json');
	assert.is(await typeOf('[1]'), 'application/json');
	for (const text of ['{}', '[]', '"text"', '12345', '{"a":', 'text']) {
		assert.is(await typeOf(text), 'text/plain; charset=utf-8', text);
	}
});

test('an existing content type is kept', async () => {
	const x = await serveRequest([
		{ handler: 'edit_headers', response: { set: [{ name: 'Content-Type', value: 'text/html' }] } },
		{ handler: 'respond', body: '<p>' },
	]);
	assert.equal(responseLines(x), ['Content-Type: text/html']);
});

test('placeholders in the body are expanded, and unknown ones kept', async () => {
	const x = await serveRequest([
		{ handler: 'respond', body: '{http.request.method} {no.such} {"a":"{http.request.host}"}' },
	]);
	assert.is(bodyText(x), 'GET {no.such} {"a":"example.test"}');
});

test('R3: a placeholder gives the local port', async () => {
	assert.is(bodyText(await serveRequest([{ handler: 'respond', body: '{http.request.local.port}' }])), '9080');
});

test('R4: a JSON request body can be sent back as JSON, streamed in pieces or not', async () => {
	const text = '{\n  "naïve": [1,\n 2]\n}';
	const bytes = Buffer.from(text);
	const pieces = [bytes.subarray(0, 6), bytes.subarray(6)];
	const stream = { length: undefined, pull: async () => pieces.shift() ?? null, cancel() {} };
	for (const body of [text, bytes, stream]) {
		const x = await serveRequest([{ handler: 'respond', body: '{http.request.body}' }], { method: 'POST', body });
		assert.is(bodyText(x), text);
		assert.equal(responseLines(x), ['Content-Type: application/json']);
	}
});

test('a status may come from a placeholder; an invalid one is a 500', async () => {
	const steps = [{ handler: 'respond', status: '{http.request.header.Wanted}' }];
	assert.is((await serveRequest(steps, { headers: [['Wanted', '418']] })).response.status, 418);
	for (const wanted of ['', 'abc', '99', '600', '2000']) {
		try {
			await serveRequest(steps, { headers: [['Wanted', wanted]] });
			assert.unreachable();
		} catch (error) {
			assert.is((error as { status: number }).status, 500);
		}
	}
});

test('103 sends the current fields and continues', async () => {
	const x = await serveRequest([
		{ handler: 'edit_headers', response: { add: [{ name: 'Link', value: '</a.css>; rel=preload' }] } },
		{ handler: 'respond', status: 103 },
		{ handler: 'respond', body: 'done' },
	]);
	assert.is(x.informed.length, 1);
	assert.is(x.informed[0]?.status, 103);
	assert.is(x.informed[0]?.headers.get('link'), '</a.css>; rel=preload');
	assert.is(bodyText(x), 'done');
	assert.is(x.response.headers.get('link'), '</a.css>; rel=preload');
});

test('close requests the end of the connection', async () => {
	const x = await serveRequest([{ handler: 'respond', status: 200, close: true }]);
	assert.is(x.response.headers.get('connection'), 'close');
});

test('if no handler responds, the result is an empty 200 attributed to no handler', async () => {
	const x = await serveRequest([]);
	assert.is(x.response.status, 200);
	assert.is(x.response.body, null);
	assert.is(x.answeredBy, '');
});

test.run();
