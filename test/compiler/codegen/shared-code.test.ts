/** Sites that share compiled closures still behave as configured. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { buildSite } from '../../../compiler/codegen/build-site.ts';
import type { BuiltSite } from '../../../compiler/codegen/built-site.ts';
import { UNKNOWN_HOST_FACTS } from '../../../compiler/codegen/placeholders/index.ts';
import { SharedCode } from '../../../compiler/codegen/shared-code.ts';
import type { Site, Step } from '../../../compiler/document/document.ts';
import { bodyText, fakeExchange, NO_LEASES, responseLines } from '../fake-exchange.ts';

const route = (name: string, text = name): Step => ({
	handler: 'group',
	exclusive: 'g',
	when: { type: 'path', patterns: [`/${name}/*`] },
	pipeline: [{ handler: 'respond', body: text }],
});
const ROUTES = ['a', 'b', 'c', 'd', 'e'].map(name => route(name));

function build(sites: readonly (readonly Step[])[], more: Partial<Site> = {}): BuiltSite[] {
	const shared = new SharedCode();
	const leases = { lease: (kind: never) => (kind === 'access_log' ? { record() {} } : { open() {} }) as never };
	return sites.map((pipeline, index) =>
		buildSite({ addresses: [`http://s${index}.example`], pipeline, ...more }, index, {
			...{
				settings: {},
				upstreams: {},
				routes: { r: [{ handler: 'respond', body: 'route' }] },
				facts: UNKNOWN_HOST_FACTS,
				sharedCode: shared,
			},
			leases: kindsOf(sites[index]!).has('respond') ? NO_LEASES : leases,
		}),
	);
}

function kindsOf(steps: readonly Step[]): Set<string> {
	return new Set(steps.map(({ handler }) => handler));
}

async function answer(site: BuiltSite, target: string): Promise<string> {
	const x = fakeExchange({ target });
	await site.runSite(x);
	return `${x.siteName} ${x.response.status} ${bodyText(x)} ${responseLines(x).join(' ')}`.trim();
}

const sharing = suite('code sharing between sites');

sharing('sites with equal steps share one closure, but keep their own names', async () => {
	const copy = JSON.parse(JSON.stringify(ROUTES)) as Step[];
	const [one, two] = build([ROUTES, copy]) as [BuiltSite, BuiltSite];
	assert.is(one.mainHandler, two.mainHandler);
	assert.match(await answer(one, '/c/x'), /^http:\/\/s0\.example 200 c /);
	assert.match(await answer(two, '/d/x'), /^http:\/\/s1\.example 200 d /);
	assert.is(await answer(two, '/z'), 'http://s1.example 200');
});

sharing('sites whose steps differ in a string do not share', async () => {
	const [one, two] = build([ROUTES, [...ROUTES.slice(0, 4), route('e', 'other')]]) as [BuiltSite, BuiltSite];
	assert.is.not(one.mainHandler, two.mainHandler);
	assert.match(await answer(one, '/e/'), / 200 e /);
	assert.match(await answer(two, '/e/'), / 200 other /);
	assert.match(await answer(two, '/a/'), / 200 a /);
});

for (const [what, step] of Object.entries({
	'runs a named route': { handler: 'run_route', route: 'r' },
	'uses a placeholder that another step may define': {
		handler: 'edit_headers',
		response: { set: [{ name: 'X', value: '{made}' }] },
	},
	'leases a process-wide resource': { handler: 'files', root: '/srv' },
} satisfies Record<string, Step>)) {
	sharing(`a site that ${what} does not share its code`, () => {
		const [one, two] = build([[step], [{ ...step }]]) as [BuiltSite, BuiltSite];
		assert.is.not(one.mainHandler, two.mainHandler);
	});
}

sharing("a placeholder defined by a site has that site's value in shared code", async () => {
	const use: Step = { handler: 'group', pipeline: [{ handler: 'respond', body: 'v={made}' }] };
	const make: Step = {
		handler: 'lookup',
		source: '{http.request.uri.path}',
		destinations: ['made'],
		mappings: [{ input: '/k', outputs: ['found'] }],
	};
	const [without, with_] = build([[use], [make, use]]) as [BuiltSite, BuiltSite];
	assert.match(await answer(without, '/k'), /v=\{made\}/);
	assert.match(await answer(with_, '/k'), /v=found/);
});

sharing('an interrupted exclusive group is independent of the group around it', async () => {
	const apart = (name: string): Step => ({
		handler: 'group',
		pipeline: [
			{ handler: 'edit_headers', exclusive: 'x', response: { add: [{ name: 'M', value: name }] } },
			{ handler: 'edit_headers', response: { add: [{ name: 'M', value: '-' }] } },
			{ handler: 'edit_headers', exclusive: 'x', response: { add: [{ name: 'M', value: 'no' }] } },
			{ handler: 'respond', status: 204 },
		],
	});
	const [one, two] = build([[apart('a')], [...(apart('a').pipeline as Step[])], [apart('a')]]) as [
		BuiltSite,
		BuiltSite,
	];
	for (const site of [one, two]) assert.match(await answer(site, '/'), / 204 {2}M: a M: -$/);
});

sharing('a site with error routes or logs has its own closure around the shared one', () => {
	const [site] = build([ROUTES], { errors: [{ pipeline: [{ handler: 'respond', body: 'failed' }] }] }) as [BuiltSite];
	assert.is(site.mainHandler, undefined);
});

sharing.run();
