/** The packaged extension for Visual Studio Code: the contents of the package, and its client with a real language server. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { strFromU8, unzipSync } from 'fflate';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findBinary, programFolders } from '../../../cli/editors/vscode/find-binary.ts';
import { ROOT, SVC, temporaryFolder, until } from '../../harness.ts';
import { type FakeDiagnostic, FakeEditor, NEVER_CANCELED } from './fake-vscode.ts';

const extension = suite('extension of Visual Studio Code');

/** Packages the extension and unpacks the package. Returns the folder and the names of the files in it. */
function unpackExtension(): { folder: string; files: readonly string[] } {
	const folder = temporaryFolder();
	const output = path.join(folder, 'svc.vsix');
	const script = path.join(ROOT, 'cli/editors/vscode/package-extension.ts');
	const result = spawnSync(process.execPath, [script, '--output', output], { encoding: 'utf8' });
	assert.is(result.status, 0, result.stderr);
	const files = unzipSync(readFileSync(output));
	for (const [name, content] of Object.entries(files)) {
		mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
		writeFileSync(path.join(folder, name), strFromU8(content));
	}
	return { folder, files: Object.keys(files) };
}

const { folder: unpackedFolder, files: packed } = unpackExtension();
const MAIN = path.join(unpackedFolder, 'extension/extension.cjs');
const read = (name: string): string => readFileSync(path.join(unpackedFolder, name), 'utf8');
const manifest = JSON.parse(read('extension/package.json'));

const TEXT = `http://a.test {
  respond hi
}

test "it greets" {
	GET http://a.test/
	expect body hi
}
test "it is wrong" {
	GET http://a.test/
	expect status 418
}
`;

const active: FakeEditor[] = [];

/** Opens an editor with the given settings; by default, the setting `path` names the server's binary. */
async function editorWith(settings: { [name: string]: unknown } = { path: SVC }): Promise<FakeEditor> {
	const editor = new FakeEditor(temporaryFolder(), settings);
	active.push(editor);
	await editor.activate(MAIN);
	return editor;
}

function codeOf({ code }: FakeDiagnostic): string {
	return typeof code === 'string' ? code : code.value;
}

extension('the package has what its manifests name', () => {
	const description = read('extension.vsixmanifest');
	for (const [, file] of description.matchAll(/<Asset [^>]*Path="([^"]+)"/g)) assert.ok(packed.includes(file!), file);
	const root = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string };
	assert.is(manifest.version, root.version);
	const { name, publisher } = manifest;
	assert.match(description, `Id="${name}" Version="${root.version}" Publisher="${publisher}"`);
	assert.match(description, `Id="Microsoft.VisualStudio.Code.Engine" Value="${manifest.engines.vscode}"`);
	const { languages, grammars } = manifest.contributes;
	const named = [manifest.main, ...languages.map((one: { configuration: string }) => one.configuration)];
	for (const file of [...named, ...grammars.map((one: { path: string }) => one.path)])
		assert.ok(packed.includes(path.posix.join('extension', file)), file);
	const types = new Set([...read('[Content_Types].xml').matchAll(/Extension="([^"]+)"/g)].map(([, type]) => type));
	for (const file of packed) if (!file.startsWith('[')) assert.ok(types.has(path.extname(file)), file);
	for (const { scopeName, path: file } of grammars)
		assert.is(JSON.parse(read(path.posix.join('extension', file))).scopeName, scopeName);
	// The bundle needs no files outside of the package.
	const requiredModules = new Set(
		[...read('extension/extension.cjs').matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name]) => name!),
	);
	const builtin = [...requiredModules].filter(name => name !== 'vscode' && !process.getBuiltinModule(name));
	assert.equal(builtin, []);
});

extension('the problem matcher reads what svc prints', () => {
	const folder = temporaryFolder();
	writeFileSync(path.join(folder, 'Configfile'), 'http://a.test {\n  rspond hi\n}\n');
	const args = ['validate', '--lint', '--format', 'unix'];
	const { stdout, stderr } = spawnSync(SVC, args, { cwd: folder, encoding: 'utf8' });
	const [pattern] = manifest.contributes.problemPatterns;
	const [line] = `${stdout}${stderr}`.split('\n');
	const match = new RegExp(pattern.regexp).exec(line!)!;
	const part = (name: string): string => match[pattern[name]]!;
	assert.is(path.basename(part('file')), 'Configfile');
	assert.equal([part('line'), part('column'), part('severity')], ['2', '3', 'error']);
	assert.match(part('message'), '`rspond` is not a directive.');
	assert.is(part('code'), 'directive/unknown');
});

extension('shows diagnostics, fixes them, completes, explains words and formats', async () => {
	const editor = await editorWith();
	const file = editor.open('Configfile', 'configfile', TEXT.replace('respond', 'rspond'));
	const uri = file.uri.toString();
	const codes = (): readonly string[] => (editor.diagnostics.get(uri) ?? []).map(codeOf);
	await until('the diagnostic', () => codes().includes('directive/unknown'));
	const [diagnostic] = editor.diagnostics.get(uri)!;
	const actions = await editor.ask<readonly { title: string }[]>(
		...([
			'CodeActions',
			'provideCodeActions',
			file,
			diagnostic!.range,
			{ diagnostics: [diagnostic], triggerKind: 1 },
		] as const),
	);
	assert.is(actions[0]!.title, 'Change `rspond` to `respond`');
	editor.edit('Configfile', 'rspond', 'respond');
	await until('the fix', () => !codes().includes('directive/unknown'));
	const position = file.positionAt(file.getText().indexOf('respond') + 3);
	const hover = await editor.ask<{ contents: readonly { value: string }[] | { value: string } }>(
		...(['Hover', 'provideHover', file, position] as const),
	);
	assert.match([hover.contents].flat()[0]!.value, 'respond [matcher]');
	const complete = editor.providers.get('CompletionItem')!.provideCompletionItems!;
	const completions = (await complete(file, position, NEVER_CANCELED, { triggerKind: 0 })) as
		| readonly { label: string }[]
		| { items: readonly { label: string }[] };
	const labels = ('items' in completions ? completions.items : completions).map(({ label }) => label);
	assert.ok(labels.includes('respond'));
	const options = { tabSize: 4, insertSpaces: false };
	const edits = await editor.ask<readonly { newText: string }[]>(
		...(['DocumentFormattingEdit', 'provideDocumentFormattingEdits', file, options] as const),
	);
	assert.ok(edits.some(({ newText }) => newText.includes('\t')));
	await editor.deactivate();
});

extension('lists and runs tests, and points at the expectation that failed', async () => {
	const editor = await editorWith();
	const file = editor.open('Configfile', 'configfile', TEXT);
	await until('the tests', () => editor.tests.get(file.uri.toString())?.children.size === 2);
	const [, item] = [...editor.tests.get(file.uri.toString())!.children][1]!;
	assert.equal([item.label, item.range!.start.line], ['it is wrong', 8]);
	await editor.run();
	assert.equal(
		editor.results.map(({ state, label, line }) => [state, label, line]),
		[
			['passed', 'it greets', undefined],
			['failed', 'it is wrong', 10],
		],
	);
	assert.match(editor.results[1]!.message!, 'test/failed');
	// The results appear in the test explorer, so no message is shown.
	assert.equal(editor.shown, []);
	editor.edit('Configfile', 'it is wrong', 'it is renamed');
	await until('the new name', () =>
		[...editor.tests.get(file.uri.toString())!.children].some(([, one]) => one.label === 'it is renamed'),
	);
	await editor.deactivate();
	assert.is(editor.tests.size, 0);
});

extension('asks for a request and shows its trace', async () => {
	const editor = await editorWith();
	const file = editor.open('Configfile', 'configfile', TEXT);
	const lenses = await editor.ask<readonly { command: { command: string; arguments: unknown[] } }[]>(
		...(['CodeLens', 'provideCodeLenses', file] as const),
	);
	const lens = lenses.find(({ command }) => command.command === 'svc.explainRequest')!;
	editor.entered = 'DELETE http://a.test/x';
	await editor.commands.get('svc.explainRequest')!(...lens.command.arguments);
	assert.is(editor.proposed, 'http://a.test/');
	const trace = editor.output.get('svc: Explained Requests')!;
	assert.match(trace, 'DELETE http://a.test/x');
	assert.match(trace, 'respond');
	// Runs the command as the command palette does, without arguments.
	editor.entered = undefined;
	await editor.commands.get('svc.explainRequest')!();
	assert.is(editor.proposed, 'https://example.com/');
	await editor.deactivate();
});

extension('converts the Caddyfile in front', async () => {
	const editor = await editorWith();
	editor.open('Caddyfile', 'caddyfile', 'http://a.test {\n\tfile_server\n\theader X y\n}\n');
	const made = (await editor.commands.get('svc.convertToConfigfile')!()) as { uri: string; text: string };
	assert.match(made.uri, /\/Configfile$/);
	const [edit] = editor.applied;
	assert.equal(edit!.created.map(String), [made.uri]);
	assert.is(edit!.edits[0]!.edits[0]!.newText, made.text);
	assert.is(made.text, 'http://a.test {\n\theader X y\n\tfile_server\n}\n');
	await editor.deactivate();
});

extension('has every command of its manifest, and a task that runs', async () => {
	const editor = await editorWith();
	for (const { command } of manifest.contributes.commands) assert.ok(editor.commands.has(command), command);
	writeFileSync(path.join(editor.folder, 'Configfile'), 'http://a.test {\n\trspond hi\n}\n');
	const [task] = editor.taskProvider!.provideTasks();
	const { process: program, args, options } = task!.execution;
	const { stdout, stderr } = spawnSync(program, args, { cwd: options.cwd, encoding: 'utf8' });
	assert.match(`${stdout}${stderr}`, '[directive/unknown]');
	assert.equal(task!.matchers, ['$svc']);
	await editor.commands.get('svc.restart')!();
	const file = editor.open('Configfile', 'configfile', 'nothing');
	await until('diagnostics after a restart', () => (editor.diagnostics.get(file.uri.toString()) ?? []).length > 0);
	await editor.deactivate();
	assert.is(editor.commands.size, 0);
});

extension('says what to do if there is no binary, or another program of that name', async () => {
	const other = path.join(temporaryFolder(), 'svc');
	writeFileSync(other, '#!/bin/sh\necho "svc: unable to control language-server"\nexit 100\n', { mode: 0o755 });
	for (const [given, message] of [
		['/nowhere/svc', 'The setting svc.path is "/nowhere/svc", which is not a program.'],
		[other, `The setting svc.path is "${other}", which is not svc, or a version without a language server.`],
	] as const) {
		const editor = await editorWith({ path: given });
		assert.equal(editor.shown, [message]);
		await editor.deactivate();
	}
	const home = temporaryFolder();
	const search = { pathSetting: '', home, folders: [path.dirname(other)] };
	assert.match(((await findBinary(search)) as { problem: string }).problem, 'Install it');
	mkdirSync(path.join(home, 'bin'));
	writeFileSync(path.join(home, 'bin/svc'), `#!/bin/sh\nexec ${SVC} "$@"\n`, { mode: 0o755 });
	const folders = programFolders(`relative:${path.dirname(other)}`, home);
	assert.is(folders.includes('relative'), false);
	const wanted = folders.filter(folder => folder === path.dirname(other) || folder.startsWith(home));
	assert.equal(await findBinary({ ...search, folders: wanted }), { path: path.join(home, 'bin/svc') });
});

// A language server that is still running would keep the test process from exiting.
extension.after.each(async () => {
	for (const editor of active.splice(0)) await editor.deactivate();
});

extension.run();
