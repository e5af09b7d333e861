/** The definitions for users' CI, such as the GitHub action, run commands that work. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';
import { ROOT, runCommand, SVC, temporaryFolder } from '../harness.ts';

interface Hook {
	readonly id: string;
	readonly entry: string;
	readonly files: string;
	readonly exclude?: string;
}

const definitions = suite('CI definitions');

definitions('the hooks of pre-commit take configurations by their names, and run', async () => {
	const hooks = parse(readFileSync(path.join(ROOT, '.pre-commit-hooks.yaml'), 'utf8')) as readonly Hook[];
	assert.equal(
		hooks.map(({ id }) => id),
		['svc-fmt', 'svc-validate'],
	);
	for (const { id, entry, files, exclude } of hooks) {
		const takes = (name: string): boolean => {
			return new RegExp(files).test(name) && (exclude === undefined || !new RegExp(exclude).test(name));
		};
		for (const name of ['Configfile', 'sites/Caddyfile', 'a/b.configfile', 'Compatfile.production']) {
			assert.ok(takes(name), `${id} ${name}`);
		}
		for (const name of ['README.md', 'profile', 'myconfigfile/x.ts']) assert.not.ok(takes(name), `${id} ${name}`);
		const cwd = temporaryFolder();
		writeFileSync(path.join(cwd, 'Configfile'), ':8080 {\n  respond "ok"\n}\n');
		writeFileSync(path.join(cwd, 'b.configfile'), ':8081 {\n\trespond "ok"\n}\n');
		const [svc, ...words] = entry.split(' ');
		assert.is(svc, 'svc');
		const { status, stderr } = await runCommand([...words, 'Configfile', 'b.configfile'], { cwd });
		if (id === 'svc-fmt') {
			assert.is(status, 0, stderr);
			assert.is(readFileSync(path.join(cwd, 'Configfile'), 'utf8'), ':8080 {\n\trespond "ok"\n}\n');
		} else {
			assert.is(status, 1);
			assert.match(stderr, /format\/unformatted/);
		}
	}
});

definitions('the action fails for a warning, unless it is not strict, and annotates the line', () => {
	const action = parse(readFileSync(path.join(ROOT, '.ci/actions/validate/action.yml'), 'utf8'));
	const [step] = action.runs.steps;
	const cwd = temporaryFolder();
	mkdirSync(path.join(cwd, 'sites'));
	writeFileSync(path.join(cwd, 'sites/a.configfile'), ':8080 {\n\t@api path /api*\n\trespond @api "ok"\n}\n');
	const run = (strict: string) => {
		const env = { ...process.env, SVC, PATHS: 'sites', STRICT: strict };
		return spawnSync('bash', ['-c', step.run], { cwd, env, encoding: 'utf8' });
	};
	assert.equal(Object.keys(step.env), ['SVC', 'PATHS', 'STRICT']);
	const strict = run(action.inputs.strict.default);
	assert.match(strict.stdout, /^::warning file=sites\/a\.configfile,line=2,.*Suggested: @api path \/api \/api\/\*$/m);
	assert.is(strict.status, 1);
	assert.is(run('false').status, 0);
});

definitions.run();
