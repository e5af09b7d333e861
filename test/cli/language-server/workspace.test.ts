/** `svc language-server`: which files it reads, and which files it never reads. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runCommand, temporaryFolder } from '../../harness.ts';
import { Editor, endEditors } from './editor.ts';

const workspace = suite('language server: workspace');

/** Starts an editor in a folder with files. */
async function startEditor(
	files: { readonly [name: string]: string },
	command?: string,
	more?: { readonly capabilities: object },
): Promise<Editor> {
	const folder = temporaryFolder();
	for (const [name, text] of Object.entries(files)) {
		mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
		writeFileSync(path.join(folder, name), text);
	}
	const editor = new Editor(folder, command === undefined ? {} : { command });
	await editor.initialize(more);
	return editor;
}

function codes(editor: Editor, file: string): string[] {
	return (editor.published.get(file)?.diagnostics ?? []).map(({ code }) => code);
}

workspace('unsaved texts count in place of the files on disk', async () => {
	const editor = await startEditor({
		Configfile: 'import part.conf\nhttp://a.test {\n\tuse part\n}\n',
		'part.conf': '',
	});
	editor.open('Configfile');
	editor.open('part.conf', '(part) {\n\trespond hi\n}\n');
	await editor.whenSettled();
	assert.equal(codes(editor, 'Configfile'), []);
	editor.replace('part.conf', '(other) {\n\trespond hi\n}\n');
	await editor.whenSettled();
	assert.ok(codes(editor, 'Configfile').includes('snippet/unknown'));
	await editor.quit();
});

workspace('an imported file is checked in the configuration that imports it, in its language', async () => {
	const editor = await startEditor({
		Caddyfile: 'http://a.test {\n\timport part.conf\n}\n',
		'part.conf': 'redir /a /b\nrespond {hostt}\n',
	});
	editor.open('part.conf');
	await editor.whenSettled();
	// If the file were treated as a Configfile, directives outside of sites would be reported.
	assert.equal(codes(editor, 'part.conf'), ['placeholder/unknown']);
	await editor.quit();
});

workspace('a file that two configurations import shows a finding of both once', async () => {
	const text = 'import part.conf\nhttp://NAME.test {\n\timport part\n}\n';
	const editor = await startEditor({
		Configfile: text.replace('NAME', 'a'),
		'b.configfile': text.replace('NAME', 'b'),
		'part.conf': '(part) {\n\trspond hi\n}\n',
	});
	editor.open('part.conf');
	await editor.whenSettled();
	assert.equal(codes(editor, 'part.conf'), ['directive/unknown']);
	await editor.quit();
});

workspace('files outside of the workspace are neither read nor probed', async () => {
	const outside = temporaryFolder();
	writeFileSync(path.join(outside, 'secret.conf'), '(outside) {\n\trespond "the secret" 2000\n}\n');
	const text = [
		`import ${outside}/secret.conf`,
		`import ${outside}/missing.conf`,
		'import ../*/secret.conf',
		'import link.conf',
		'import folder/secret.conf',
		`example.test {`,
		'	use outside',
		`	tls ${outside}/secret.conf ${outside}/missing.conf`,
		`	root ${outside}/missing`,
		'	file_server',
		'}',
		'',
	].join('\n');
	const editor = await startEditor({ Configfile: text });
	symlinkSync(path.join(outside, 'secret.conf'), path.join(editor.folder, 'link.conf'));
	symlinkSync(outside, path.join(editor.folder, 'folder'));
	editor.open('Configfile');
	await editor.whenSettled();
	const { diagnostics } = editor.published.get('Configfile')!;
	const at = (line: number): string[] =>
		diagnostics.filter(({ range }) => range.start.line === line).map(({ code }) => code);
	// The server must not reveal whether a file outside the workspace exists.
	assert.equal([at(0), at(1)], [['import/withheld'], ['import/withheld']]);
	assert.equal(at(2), ['import/no-match']);
	assert.equal([at(3), at(4)], [['import/withheld'], ['import/withheld']]);
	assert.equal(at(6), ['snippet/unknown']);
	assert.equal([at(7), at(8)], [[], []]);
	const textDocument = { uri: editor.uri('Configfile') };
	const links = (await editor.request('textDocument/documentLink', { textDocument })) as { target: string }[];
	const symbols = await editor.request('workspace/symbol', { query: '' });
	const everything = JSON.stringify([...editor.published, links, symbols]);
	assert.not.match(everything, 'the secret');
	assert.not.match(everything, 'value/not-a-status');
	assert.equal(
		links.map(({ target }) => editor.file(target)).filter(target => target.includes(outside)),
		[],
	);
	await editor.quit();
});

workspace('a file that belongs to no workspace makes its folder one', async () => {
	const folder = temporaryFolder();
	writeFileSync(path.join(folder, 'part.conf'), '(part) {\n\trespond hi\n}\n');
	writeFileSync(path.join(folder, 'Configfile'), 'import part.conf\nhttp://a.test {\n\tuse part\n}\n');
	const editor = new Editor(folder);
	await editor.initialize({ rootUri: null, workspaceFolders: null });
	editor.open('Configfile');
	await editor.whenSettled();
	assert.equal(codes(editor, 'Configfile'), []);
	await editor.quit();
});

workspace('texts that are no files are checked too', async () => {
	const editor = await startEditor({});
	const uri = 'untitled:Untitled-1';
	const text = 'http://a.test {\n\trspond hi\n}\n';
	editor.notify('textDocument/didOpen', { textDocument: { uri, languageId: 'configfile', version: 1, text } });
	const published = await new Promise<{ version?: number; codes: string[] }>(resolve => {
		editor.onPublished = (_file, { version, diagnostics }) =>
			resolve({ ...(version === undefined ? {} : { version }), codes: diagnostics.map(({ code }) => code) });
	});
	assert.equal(published, { version: 1, codes: ['directive/unknown'] });
	await editor.quit();
});

workspace('JSON and files of other hosts are left alone or checked as texts', async () => {
	const editor = await startEditor({ 'site.json': '{"sites": []}', Configfile: 'http://a.test {\n\trespond hi\n}\n' });
	const open = (uri: string, languageId: string, text: string): void =>
		editor.notify('textDocument/didOpen', { textDocument: { uri, languageId, version: 1, text } });
	open(editor.uri('site.json'), 'json', '{"sites": []}');
	open('file://elsewhere/Configfile', 'plaintext', 'http://a.test {\n\trspond hi\n}\n');
	editor.open('Configfile');
	await editor.whenSettled();
	assert.equal(
		[...editor.published].map(([file, { diagnostics }]) => [file, diagnostics.length]),
		[
			['file://elsewhere/Configfile', 1],
			['Configfile', 0],
		],
	);
	await editor.quit();
});

const TWO_SITES = 'http://a.test {\n\tfile_server\n\theader X y\n}\nhttp://b.test {\n\trespond hi\n}\n';

workspace('a site is converted to a new file, and an existing file stays as it is', async () => {
	const editor = await startEditor({ Caddyfile: TWO_SITES, 'b.test.configfile': '' });
	editor.open('Caddyfile');
	const convert = (line: number) =>
		editor.request('workspace/executeCommand', {
			command: 'svc.convertToConfigfile',
			arguments: [editor.uri('Caddyfile'), { line, character: 0 }],
		});
	const uri = editor.uri('a.test.configfile');
	const newText = 'http://a.test {\n\theader X y\n\tfile_server\n}\n';
	assert.equal(await convert(1), { uri, text: newText });
	const start = { line: 0, character: 0 };
	const applied = editor.asked.filter(({ method }) => method === 'workspace/applyEdit');
	assert.equal(
		applied.map(({ params }) => (params as { edit: object }).edit),
		[
			{
				documentChanges: [
					{ kind: 'create', uri },
					{ textDocument: { uri, version: null }, edits: [{ range: { start, end: start }, newText }] },
				],
			},
		],
	);
	const refused = await convert(5).catch(({ message }: Error) => message);
	assert.is(refused, '-32803: `b.test.configfile` exists. Rename or delete it first.');
	assert.is(editor.asked.filter(({ method }) => method === 'workspace/applyEdit').length, 1);
	await editor.quit();
});

workspace('conversions are offered only to editors that can create files', async () => {
	for (const resourceOperations of [['create', 'rename'], ['rename'], undefined]) {
		const capabilities = {
			workspace: { applyEdit: true, workspaceEdit: { documentChanges: true, resourceOperations } },
		};
		const editor = await startEditor({ Caddyfile: TWO_SITES }, undefined, { capabilities });
		editor.open('Caddyfile');
		const start = { line: 1, character: 0 };
		const actions = (await editor.request('textDocument/codeAction', {
			textDocument: { uri: editor.uri('Caddyfile') },
			range: { start, end: start },
			context: { diagnostics: [], only: ['refactor.rewrite'] },
		})) as { title: string }[];
		assert.equal(
			actions.map(({ title }) => title),
			resourceOperations?.includes('create') ? ['Convert this site to a Configfile', 'Convert to a Configfile'] : [],
		);
		await editor.quit();
	}
});

workspace('the server ends when its editor has ended', async () => {
	const editor = await startEditor({});
	editor.hangUp();
	assert.is(await editor.exited, 1);
});

workspace('the language is that of the editor, otherwise of the file name', async () => {
	const text = 'http://a.test {\n\trespond {nothing}\n}\n';
	const editor = await startEditor({ one: text, 'site.caddyfile': text, two: text });
	editor.open('one', text, 'caddyfile');
	editor.open('site.caddyfile', text);
	editor.open('two', text);
	await editor.whenSettled();
	const severities = ['one', 'site.caddyfile', 'two'].map(
		file => editor.published.get(file)!.diagnostics.find(({ code }) => code === 'placeholder/unknown')?.severity,
	);
	assert.equal(severities, [2, 2, 1]);
	await editor.quit();
});

workspace('`lsp` is another name of the command, and exiting without shutdown is a failure', async () => {
	const editor = await startEditor({}, 'lsp');
	editor.notify('exit', null);
	assert.is(await editor.exited, 1);
	const { stdout } = await runCommand(['help', 'lsp']);
	assert.match(stdout, 'svc language-server');
});

workspace.after(endEditors);

workspace.run();
