/** For random sites with named matchers, the compiled order of routes equals the model's order. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SeededChance } from '../../agreement/chance.ts';
import { roundCount } from '../../round-count.ts';
import { compileToDocument } from '../compatfile/page.ts';
import { type ModelRoute, sortByModel } from './route-order-model.ts';

const SITE_COUNT = roundCount({ few: 700, many: 10_000 });
/** Number of sites per configuration; compiling many together is faster. */
const SITES_PER_TEXT = 100;

const PATHS = [
	'/a',
	'/a*',
	'/ab',
	'/ab*',
	'/b',
	'/b/*',
	'/c/d',
	'/c/d*',
	'/é*',
	'/',
	'/*',
	'/api',
	'/api*',
	'/*/x',
	'*',
];
const LENGTHS = [1, 2, 4, 8, 12, 19, 20, 21, 25, 39, 41, 45, 60, 85, 130];

/** The directives in use, in the order in which they run. Two directives that share a position are listed together. */
const DIRECTIVES = [
	...['vars', 'root', 'log_append', 'header', 'redir', 'method', 'rewrite', 'uri', 'try_files', 'request_header'],
	...['handle', 'route', 'error', 'respond', 'reverse_proxy', 'php_fastcgi'],
] as const;
type Name = (typeof DIRECTIVES)[number];

/** A random matcher: its token, and its description for the model. */
interface RandomMatcher {
	readonly token: string;
	readonly sets: number;
	readonly paths: readonly string[];
}

/** A route of the model, with the mark that identifies it in the document. */
interface MarkedRoute extends ModelRoute {
	readonly mark: string;
}

const order = suite('route order');

order(`${SITE_COUNT} random sites are ordered like the model`, () => {
	const chance = new SeededChance(20261122);
	for (let first = 0; first < SITE_COUNT; first += SITES_PER_TEXT) {
		const sites = Array.from({ length: SITES_PER_TEXT }, () => randomSite(chance));
		const text = sites.map(({ lines }, at) => `http://:${at + 1024} {\n${lines.join('\n')}\n}\n`).join('');
		const documents = compileToDocument(text).sites as readonly { readonly pipeline: unknown }[];
		for (const [at, { lines, routes }] of sites.entries()) {
			const actual = marksOf(documents[at]!.pipeline);
			const expected = [...new Set(sortByModel(routes).map(({ mark }) => mark))];
			if (actual.join(' ') !== expected.join(' ')) assert.equal(actual, expected, lines.join('\n'));
		}
	}
});

order('the model reproduces comparisons that are not transitive', () => {
	const route = (path: string, at: number): MarkedRoute => ({
		mark: `m${at}x`,
		rank: 1,
		directive: 'respond',
		sets: 1,
		paths: path === '' ? [] : [path],
	});
	const marks = (...paths: string[]): string[] => sortByModel(paths.map(route)).map(({ mark }) => mark);
	// Runs of twenty routes are sorted by insertion, which never moves a route past a route with another kind of matcher.
	assert.equal(marks('/a', '', '/abc'), ['m0x', 'm1x', 'm2x']);
	assert.equal(marks('/a', '/abc', ''), ['m1x', 'm0x', 'm2x']);
	// The twenty-first route is inserted by bisection, which can skip routes with another kind of matcher.
	const many = marks(...Array.from({ length: 19 }, () => '/a'), '', '/abc');
	assert.is(many[0], 'm20x');
});

order.run();

/** Returns the lines of a site with random directives, and its routes in the order of the lines. */
function randomSite(chance: SeededChance): { lines: string[]; routes: MarkedRoute[] } {
	const named = chance.repeat(0, 7, () => chance.below(8)).map((kind, at) => namedMatcher(chance, kind, `@m${at}`));
	const names = chance.some(DIRECTIVES, chance.of([1, 1, 2, 3, 6, 16]));
	const lines: string[] = [];
	const routes: MarkedRoute[] = [];
	for (let at = 0, count = chance.of(LENGTHS); at < count; at++) {
		const name = chance.of(names);
		const drawn = drawMatcher(chance, named);
		const { line, marks } = directiveLine(name, drawn, `m${at}x`, chance);
		lines.push(line);
		const own = name === 'try_files' ? { sets: 1, paths: [] } : { sets: drawn.sets, paths: drawn.paths };
		for (const mark of marks) routes.push({ mark, rank: DIRECTIVES.indexOf(name), directive: name, ...own });
	}
	for (const { definition } of named) lines.splice(chance.below(lines.length + 1), 0, definition);
	return { lines, routes };
}

function namedMatcher(chance: SeededChance, kind: number, name: string): RandomMatcher & { definition: string } {
	const one = chance.of(PATHS);
	const two = `${chance.of(PATHS)}/other`;
	const [matcher, paths] = (
		[
			[`path ${one}`, [one]],
			[`path ${one} ${two}`, [one, two]],
			[`{\nmethod GET\npath ${one}\n}`, [one]],
			[`{\npath ${one}\npath ${two}\n}`, [one, two]],
			[`not path ${one}`, []],
			['header X y', []],
			['path_regexp ^/a', []],
			['expression `path("/a*")`', []],
		] as const
	)[kind]!;
	return { token: name, sets: 1, paths, definition: `${name} ${matcher}` };
}

function drawMatcher(chance: SeededChance, named: readonly RandomMatcher[]): RandomMatcher {
	if (named.length > 0 && chance.happens(45)) return chance.of(named);
	const path = chance.of(PATHS);
	if (chance.happens(70) && path !== '*') return { token: path, sets: 1, paths: [path] };
	return { token: '*', sets: 0, paths: [] };
}

/**
 * Returns the line of a directive and the marks of its routes. Most directives have one route; a `header` with `?` lines has two.
 */
function directiveLine(
	name: Name,
	{ token }: RandomMatcher,
	mark: string,
	chance: SeededChance,
): { line: string; marks: string[] } {
	const one = (line: string): { line: string; marks: string[] } => ({ line, marks: [mark] });
	switch (name) {
		case 'vars':
			return one(`vars ${token} name ${mark}`);
		case 'header':
			if (chance.happens(70)) return one(`header ${token} ${chance.of(['', '?', '+'])}X ${mark}`);
			return { line: `header ${token} {\n?X ${mark}b\nY ${mark}a\n}`, marks: [`${mark}a`, `${mark}b`] };
		case 'try_files':
			if (chance.happens(50)) return one(`try_files ${mark}`);
			// A `try_files` with three files has three routes.
			return { line: `try_files ${mark} ${mark}?a=b ${mark}`, marks: [mark, mark, mark] };
		case 'log_append':
			return one(`log_append ${token} key ${mark}`);
		case 'request_header':
			return one(`request_header ${token} X ${mark}`);
		case 'uri':
			return one(`uri ${token} strip_prefix /${mark}`);
		case 'redir':
		case 'rewrite':
		case 'root':
			return one(`${name} ${token} /${mark}`);
		case 'handle':
			if (token.startsWith('/') && chance.happens(30)) return one(`handle_path ${token} {\nrespond ${mark}\n}`);
			return one(`handle ${token} {\nrespond ${mark}\n}`);
		case 'route':
			return one(`route ${token} {\nrespond ${mark}\n}`);
		case 'reverse_proxy':
			return one(`reverse_proxy ${token} ${mark}:80`);
		case 'php_fastcgi':
			return one(`php_fastcgi ${token} ${mark}:9000 {\nindex off\n}`);
		default:
			return one(`${name} ${token} ${mark}`);
	}
}

/** Returns the marks in the order in which they first occur in a document. */
function marksOf(pipeline: unknown): string[] {
	return [...new Set([...JSON.stringify(pipeline).matchAll(/m\d+x[ab]?/gi)].map(([mark]) => mark.toLowerCase()))];
}
