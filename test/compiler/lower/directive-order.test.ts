/** The directive order of a Compatfile. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Matcher } from '../../../compiler/document/document.ts';
import {
	DEFAULT_ORDER,
	directivePositions,
	moveDirective,
	sortDirectives,
} from '../../../compiler/lower/directive-order.ts';
import { registryOf } from '../../../compiler/lower/registry.ts';
import type { HandlerDirective } from '../../../compiler/modules/contract/directive.ts';

const path = (...patterns: string[]): Matcher => ({ type: 'path', patterns });
const modules = registryOf('compatfile').directives;
const host: Matcher = { type: 'host', hosts: ['a'] };

function sorted(
	items: readonly (readonly [string, Matcher | undefined])[],
	order: readonly string[] = DEFAULT_ORDER,
): number[] {
	const numbered = items.map(([directive, when], at) => {
		return { directive, module: modules.get(directive) as HandlerDirective, when, routeCount: 1, at };
	});
	return sortDirectives(numbered, directivePositions(order)).map(({ at }) => at);
}

const order = suite('Compatfile order');

order('directives run in the default order, and equal ones as written', () => {
	assert.equal(
		sorted([
			['file_server', undefined],
			['respond', undefined],
			['root', undefined],
			['header', undefined],
			['header', undefined],
		]),
		[2, 3, 4, 1, 0],
	);
	assert.equal(
		sorted([
			['handle_path', path('/a')],
			['handle', path('/abc*')],
		]),
		[1, 0],
	);
});

order('the more specific path comes first, and an exact path comes before the same text as a prefix', () => {
	assert.equal(
		sorted([
			['redir', path('/api*')],
			['redir', path('/api/v1*')],
			['redir', path('/foo*')],
			['redir', path('/foo')],
		]),
		[1, 0, 3, 2],
	);
	assert.equal(
		sorted([
			['redir', path('/b')],
			['redir', path('/a')],
		]),
		[1, 0],
	);
	assert.equal(
		sorted([
			['redir', { type: 'all', of: [path('/b'), host] }],
			['redir', path('/longer')],
		]),
		[1, 0],
	);
});

order('lines with a matcher come first; otherwise the file order decides', () => {
	assert.equal(
		sorted([
			['respond', undefined],
			['respond', host],
		]),
		[1, 0],
	);
	assert.equal(
		sorted([
			['respond', path('/a', '/b')],
			['respond', host],
			['respond', path('/c')],
		]),
		[0, 1, 2],
	);
});

order('`vars` run from the least specific to the most specific', () => {
	assert.equal(
		sorted([
			['vars', path('/foobar')],
			['vars', path('/foo')],
			['vars', path('/foo*')],
			['vars', undefined],
		]),
		[3, 2, 1, 0],
	);
});

order('equal `vars` are reversed', () => {
	assert.equal(
		sorted([
			['vars', host],
			['vars', { type: 'method', methods: ['GET'] }],
			['vars', host],
		]),
		[2, 1, 0],
	);
});

order('the length of a path is counted in bytes', () => {
	assert.equal(
		sorted([
			['redir', path('/abc')],
			['redir', path('/éé')],
		]),
		[1, 0],
	);
});

order('deprecated names have their own positions', () => {
	assert.equal(
		sorted([
			['log_skip', undefined],
			['basic_auth', path('/a')],
			['skip_log', undefined],
			['basicauth', undefined],
		]),
		[2, 0, 3, 1],
	);
});

order('`php_fastcgi` without a matcher is compared with no other directive', () => {
	assert.equal(
		sorted([
			['php_fastcgi', undefined],
			['php_fastcgi', path('/a')],
			['php_fastcgi', path('/abc')],
		]),
		[0, 2, 1],
	);
});

order('a route between matchers of other kinds stays where insertion sort leaves it', () => {
	// `/longest` is first compared with `host`. It does not precede `host`, so it is never compared with `/a`.
	assert.equal(
		sorted([
			['respond', path('/a')],
			['respond', host],
			['respond', path('/longest')],
		]),
		[0, 1, 2],
	);
});

order('the `order` option moves a directive', () => {
	assert.is(moveDirective(DEFAULT_ORDER, { directive: 'respond', to: 'first' })![0], 'respond');
	assert.is(moveDirective(DEFAULT_ORDER, { directive: 'map', to: 'last' })!.at(-1), 'map');
	assert.equal(moveDirective(['a', 'b', 'c'], { directive: 'a', to: 'after', other: 'b' }), ['b', 'a', 'c']);
	assert.equal(moveDirective(['a', 'b', 'c'], { directive: 'c', to: 'before', other: 'a' }), ['c', 'a', 'b']);
	assert.is(moveDirective(['a', 'b'], { directive: 'a', to: 'after', other: 'x' }), undefined);
});

order.run();
