/** Comments that silence findings, and their scope. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../compiler/compiler.ts';
import { lint } from '../../../compiler/lint/lint.ts';
import { ReadError, type Reader } from '../../../compiler/source/reader.ts';
import { dryRunEnvironment } from '../../../runtime/compile/dry-run-environment.ts';

function reader(files: { readonly [path: string]: string } = {}): Reader {
	const missing = (path: string): never => {
		throw new ReadError('ENOENT', path);
	};
	return {
		readText: path => files[path] ?? missing(path),
		readBytes: missing,
		list: missing,
		kind: path => (files[path] === undefined ? undefined : 'file'),
		env: () => undefined,
		workingDirectory: '/work',
	};
}

async function codes(text: string, files: { readonly [path: string]: string } = {}): Promise<string[]> {
	const input = { format: 'compatfile' as const, text, name: 'Compatfile', path: '/work/Compatfile' };
	const compiled = compile(input, reader(files));
	const { document, plan } = compiled;
	assert.ok(document && plan, compiled.diagnostics.map(({ message }) => message).join());
	const deps = dryRunEnvironment('/work');
	const findings = await lint({ input, compiled: { ...compiled, document, plan }, reader: reader(files), deps });
	return findings.map(({ code, span }) => `${span?.source.position(span.start).line} ${code}`);
}

const silence = suite('silencing comments');
const RULE = 'path/prefix-without-slash';

silence('a comment at the end of a line applies to that line', async () => {
	assert.equal(await codes(`:80 {\n\trespond /a* x # lint: off ${RULE}\n\trespond /b* x\n}\n`), [`3 ${RULE}`]);
});

silence('a comment on its own line applies to the next line and the block that it opens', async () => {
	const text = `:80 {\n\t# lint: off ${RULE}\n\n\thandle /a* {\n\t\trespond /b* x\n\t}\n\thandle /c* {\n\t\trespond x\n\t}\n}\n`;
	assert.equal(await codes(text), [`7 ${RULE}`]);
});

silence('a comment before a site applies to the site', async () => {
	const text = `# lint: off path/* -- a reason, with off-file in it\n:80 {\n\trespond /a* x\n}\n\n:81 {\n\trespond /b* x\n}\n`;
	assert.equal(await codes(text), [`7 ${RULE}`]);
});

silence('a comment can apply to the whole file', async () => {
	assert.equal(await codes(`:80 {\n\trespond /a* x\n}\n# lint: off-file ${RULE}\n`), []);
});

silence('a comment can apply to an imported file, and to the import line', async () => {
	const part = 'respond /a* x\n';
	const imported = { '/work/part': part };
	assert.equal(await codes(':80 {\n\timport part\n}\n', imported), [`1 ${RULE}`]);
	assert.equal(await codes(`:80 {\n\timport part # lint: off ${RULE}\n}\n`, imported), []);
	assert.equal(await codes(':80 {\n\timport part\n}\n', { '/work/part': `# lint: off-file ${RULE}\n${part}` }), []);
});

silence('text that is not a comment silences nothing', async () => {
	assert.equal(await codes(`:80 {\n\trespond /a* "# lint: off ${RULE}"\n}\n`), [`2 ${RULE}`]);
	assert.equal(await codes(`:80 {\n\trespond /a* x#lint:off\n}\n`), [`2 ${RULE}`]);
});

silence('an unknown rule name, and a comment that silences nothing, are reported', async () => {
	assert.equal(await codes('# lint: off path/prefix matcher/unused\n:80 {\n\trespond x\n}\n'), [
		'1 lint/unknown-rule',
		'1 lint/silences-nothing',
	]);
});

silence.run();
