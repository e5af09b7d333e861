/** `push`: preload hints, and when they are sent. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Step } from '../../../../compiler/document/document.ts';
import { buildTestSite, fakeExchange, type RequestFields } from '../../fake-exchange.ts';

const push = suite('push');

/**
 * Sends requests to one site. Returns the preload hints, each marked `early` if it came before the response, otherwise `late`.
 */
function hintsOf(steps: readonly Step[], requests: readonly RequestFields[]): string[] {
	const site = buildTestSite([{ handler: 'hint_resources', resources: [] }, ...steps]);
	return requests.map(request => {
		const x = fakeExchange(request);
		let hints = '';
		x.sendInterim = (_, headers) => {
			const when = x.response.status === 0 ? 'early' : 'late';
			hints += `${when} ${headers.getAll('link').join(' ')};`;
		};
		void site.runSite(x);
		return hints;
	});
}

const link = (value: string): Step =>
	({ handler: 'edit_headers', response: { set: [{ name: 'Link', value }] } }) as Step;
const page: Step = { handler: 'respond', body: 'page' };

push('the links of a page are remembered by host and path', () => {
	const [first, second, query, other, post] = hintsOf(
		[link('</a.css>; rel=preload'), page],
		[{}, {}, { target: '/?q' }, { authority: 'other.test' }, { method: 'POST' }],
	);
	assert.is(first, 'late </a.css>; rel=preload;');
	assert.is(second, 'early </a.css>; rel=preload;');
	assert.is(query, 'early </a.css>; rel=preload;');
	assert.is(other, 'late </a.css>; rel=preload;');
	assert.is(post, '');
});

push('links of private or unsuccessful responses are not remembered', () => {
	const steps = [link('</a.css>; rel=preload')];
	const field = (name: string, value: string): Step =>
		({ handler: 'edit_headers', response: { set: [{ name, value }] } }) as Step;
	const late = ['late </a.css>; rel=preload;', 'late </a.css>; rel=preload;'];
	assert.equal(hintsOf([...steps, field('Set-Cookie', 'a=1'), page], [{}, {}]), late);
	assert.equal(hintsOf([...steps, field('Cache-Control', 'max-age=1, Private'), page], [{}, {}]), late);
	const authorized = { headers: [['Authorization', 'x']] } as const;
	assert.equal(hintsOf([...steps, page], [authorized, authorized]), late);
	assert.equal(hintsOf([...steps, { handler: 'respond', status: 404 }], [{}, {}]), ['', '']);
});

push('only preload links to the same server become hints', () => {
	const taken = (value: string): string => hintsOf([link(value), page], [{}])[0]!.replace(/^late |;$/g, '');
	assert.is(taken('</a>; rel="preload next"; as=font; crossorigin'), '</a>; rel="preload next"; as=font; crossorigin');
	assert.is(taken('</a,b>;rel=modulepreload'), '</a,b>;rel=modulepreload');
	for (const value of [
		'<https://cdn.example/a>; rel=preload',
		'<//evil.example/a>; rel=preload',
		'</\\evil.example/a>; rel=preload',
		'</a>; rel=preload; nopush',
		'</a>; rel=next',
		'</a>',
		'</a>; rel=preloaded',
		'/a; rel=preload',
		`</a>${'; a="'.repeat(20_000)}`,
	])
		assert.is(taken(value), '', value.slice(0, 40));
	const many = Array.from({ length: 100 }, (_, i) => `</${i}>; rel=preload`).join(', ');
	assert.is(taken(many).split('preload').length, 21);
});

push('the memory for hints is bounded', () => {
	const requests = Array.from({ length: 400 }, (_, i) => ({ target: `/${i}` }));
	const steps = [link(`</${'x'.repeat(1000)}>; rel=preload`), page];
	const found = hintsOf(steps, [...requests, { target: '/0' }, { target: '/399' }]).slice(-2);
	assert.match(found[0]!, /^late/);
	assert.match(found[1]!, /^early/);
});

push.run();
