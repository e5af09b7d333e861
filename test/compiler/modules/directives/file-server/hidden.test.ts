/** Patterns for hidden files. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileHiddenTest, mayHideBelow } from '../../../../../compiler/modules/directives/file-server/hidden.ts';

const patterns = suite('hidden files');
const PATTERN_CASES: readonly [pattern: string, path: string, hidden: boolean][] = [
	['.git', '/.git', true],
	['.git', '/.git/config', true],
	['.git', '/a/.git/config', true],
	['.git', '/a.git', false],
	['.*', '/.env', true],
	['.*', '/a/.well-known/x', true],
	['.*', '/a.b', false],
	['*.bak', '/a/x.bak', true],
	['*.bak', '/a/x.bak/y', true],
	['*.bak', '/a/x.baked', false],
	['?.txt', '/a.txt', true],
	['?.txt', '/ab.txt', false],
	['[a-c]x', '/bx', true],
	['[a-c]x', '/dx', false],
	['[^a-c]x', '/dx', true],
	['[z-a]x', '/zx', false],
	['[-a]x', '/-x', true],
	['[😀-😂]', '/😁', true],
	['[', '/[', true],
	['\\*', '/*', true],
	['\\*', '/a', false],
	['a+(b)|c^$.{1}', '/a+(b)|c^$.{1}', true],
	['a-b*', '/a-bc', true],
	['root', '/x', false],
	['srv', '/x', false],
	['/srv/root/private', '/private', true],
	['/srv/root/private/', '/private/a', true],
	['/srv/root/private', '/private/a/b', true],
	['/srv/root/private', '/private-not', false],
	['/srv/root/*/secret', '/a/secret', true],
	['/srv/root/*/secret', '/a/secret/b', true],
	['/srv/root/*/secret', '/a/b/secret', false],
	['/srv/root', '/anything', true],
	['/', '/anything', true],
];
for (const [pattern, path, hidden] of PATTERN_CASES) {
	patterns(`${pattern} ${hidden ? 'hides' : 'shows'} ${path}`, () => {
		assert.is(compileHiddenTest([pattern])(`/srv/root${path}`, path), hidden);
		if (hidden) assert.ok(mayHideBelow([pattern], '/srv/root'));
	});
}
patterns('a pattern for another folder hides nothing below this one', () => {
	for (const pattern of ['/etc/Configfile', '/srv/root-not/a', '/srv/roo', '/srv/other/']) {
		assert.not(mayHideBelow([pattern], '/srv/root'), pattern);
		assert.ok(mayHideBelow([pattern], '/'), pattern);
	}
	assert.ok(mayHideBelow(['/etc/Configfile', '.git'], '/srv/root'));
});
patterns('a file is hidden if any of several patterns matches', () => {
	const test = compileHiddenTest(['.git', '/srv/root/a']);
	assert.ok(test('/srv/root/a', '/a'));
	assert.ok(test('/srv/root/.git', '/.git'));
	assert.not.ok(test('/srv/root/b', '/b'));
});
patterns('many asterisks do not take exponential time', () => {
	const startedAt = performance.now();
	compileHiddenTest([`${'*'.repeat(50)}a${'*'.repeat(50)}b`])(`/${'a'.repeat(255)}`, `/${'a'.repeat(255)}`);
	assert.ok(performance.now() - startedAt < 5000);
});
patterns.run();
