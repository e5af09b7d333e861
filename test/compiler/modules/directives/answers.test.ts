/** The directives `redirect`, `fail`, `abort` and `set_variables`. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../../../compiler/exchange/http-error.ts';
import { bodyText, buildTestSite, fakeExchange, responseLines, serveRequest } from '../../fake-exchange.ts';

const redirect = suite('redirect');

redirect('answers 302 with a location, or with the configured status', async () => {
	const x = await serveRequest([{ handler: 'redirect', to: 'https://example.com{http.request.uri}' }], {
		target: '/a?b',
	});
	assert.is(x.response.status, 302);
	assert.is(x.response.body, null);
	assert.equal(responseLines(x), ['Location: https://example.com/a?b']);
	assert.is((await serveRequest([{ handler: 'redirect', to: '/', status: 308 }])).response.status, 308);
	assert.is(
		(
			await serveRequest([{ handler: 'redirect', to: '/', status: '{http.request.header.S}' }], {
				headers: [['S', '307']],
			})
		).response.status,
		307,
	);
});

redirect('replaces unknown placeholders in the target with nothing', async () => {
	assert.equal(responseLines(await serveRequest([{ handler: 'redirect', to: '/{no.such}a' }])), ['Location: /a']);
});

redirect(
	'can redirect by an HTML page without a Location, in which request text is neither markup nor script',
	async () => {
		const x = await serveRequest([{ handler: 'redirect', to: '/?x="{http.request.header.Evil}', html: true }], {
			headers: [['Evil', '"><script>alert(1)</script>']],
		});
		assert.is(x.response.status, 200);
		assert.equal(responseLines(x), ['Content-Type: text/html; charset=utf-8']);
		assert.not.match(bodyText(x), '<script>alert');
		assert.match(bodyText(x), 'href="/?x=&quot;&quot;&gt;&lt;script&gt;alert(1)');
	},
);

redirect.run();

const fail = suite('fail');

fail('throws the status and the message', () => {
	const raised = (step: object): HttpError => {
		try {
			buildTestSite([{ handler: 'fail', ...step }]).runSite(fakeExchange());
		} catch (error) {
			return error as HttpError;
		}
		throw new Error('nothing was thrown');
	};
	assert.is(raised({}).status, 500);
	const error = raised({ status: 410, message: 'gone: {http.request.method} {no.such}' });
	assert.instance(error, HttpError);
	assert.is(error.status, 410);
	assert.is(error.message, 'gone: GET {no.such}');
});

fail.run();

const abort = suite('abort');

abort('marks the exchange, and no later step runs', async () => {
	const x = await serveRequest([{ handler: 'abort' }, { handler: 'respond', body: 'no' }]);
	assert.is(x.isAborted, true);
	assert.is(x.response.body, null);
});

abort.run();

const variables = suite('set_variables');

variables('defines placeholders for later steps, and keeps the type of the value', async () => {
	const x = await serveRequest([
		{ handler: 'set_variables', variables: { root: '/srv/{http.request.host}', n: 5, b: true } },
		{ handler: 'respond', body: '{http.vars.root} {http.vars.n} {http.vars.b} [{http.vars.none}]' },
	]);
	assert.is(bodyText(x), '/srv/example.test 5 true []');
	assert.is(x.variable('n'), 5);
});

variables('does not expand values', async () => {
	const x = await serveRequest(
		[
			{ handler: 'set_variables', variables: { a: '{http.request.header.A}' } },
			{ handler: 'respond', body: '{http.vars.a}' },
		],
		{ headers: [['A', '{http.request.method}']] },
	);
	assert.is(bodyText(x), '{http.request.method}');
});

variables.run();
