/**
 * Installing the internal root certificate on a machine: layouts of distributions, browser databases, and messages to
 * the user.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openAuthority } from '../../../runtime/certificates/authority.ts';
import { authorityPlan } from '../../../runtime/certificates/authority-settings.ts';
import { createMemoryStore } from '../../../runtime/storage/memory-store.ts';
import type { MachineToTrust } from '../../../runtime/trust/machine.ts';
import { readRoot, trustRoot, untrustRoot } from '../../../runtime/trust/root-trust.ts';
import { runCommand, temporaryFolder } from '../../harness.ts';

const trust = suite('root trust');

/** Creates a store that contains a root certificate. */
async function storeWithRoot(): Promise<string> {
	const folder = temporaryFolder();
	const authority = await openAuthority(authorityPlan('local', {}, Date.now()), createMemoryStore(), Date.now);
	mkdirSync(path.join(folder, 'pki/authorities/local'), { recursive: true });
	writeFileSync(path.join(folder, 'pki/authorities/local/root.crt'), authority.rootPem);
	return folder;
}

interface TestMachine extends MachineToTrust {
	readonly ran: string[];
}

/** Returns a fake machine in a temporary folder. It records commands. A command succeeds unless its program is in `missing`. */
function fakeMachine(more: Partial<MachineToTrust> = {}, missing: readonly string[] = []): TestMachine {
	const root = temporaryFolder();
	const ran: string[] = [];
	return {
		root,
		home: path.join(root, 'home'),
		isPrivileged: true,
		ran,
		async run(program, args) {
			ran.push([program, ...args].join(' '));
			return missing.includes(program) ? { status: undefined, output: '' } : { status: 0, output: '' };
		},
		...more,
	};
}

const LAYOUTS: { [name: string]: { folder: string; extension: string; program: string } } = {
	Debian: { folder: 'usr/local/share/ca-certificates', extension: 'crt', program: 'update-ca-certificates' },
	'Red Hat': { folder: 'etc/pki/ca-trust/source/anchors', extension: 'pem', program: 'update-ca-trust extract' },
	Arch: { folder: 'etc/ca-certificates/trust-source/anchors', extension: 'crt', program: 'trust extract-compat' },
};

for (const [name, { folder, extension, program }] of Object.entries(LAYOUTS)) {
	trust(`the root is installed once in the layout of ${name}, and removed again`, async () => {
		const root = await readRoot(await storeWithRoot(), 'local');
		const here = fakeMachine();
		const anchors = path.join(here.root, folder);
		mkdirSync(anchors, { recursive: true });
		writeFileSync(path.join(anchors, `other.${extension}`), 'stays');
		assert.equal(await trustRoot(here, root), {
			sentences: [`The trust store of the system trusts \`${root.title}\` now.`],
			failures: [],
		});
		assert.equal(readdirSync(anchors).sort(), [`other.${extension}`, `${root.name}.${extension}`].sort());
		assert.is(readFileSync(path.join(anchors, `${root.name}.${extension}`), 'utf8'), root.pem);
		assert.equal((await trustRoot(here, root)).sentences, ['The trust store of the system trusted it already.']);
		assert.equal(here.ran, [program]);
		assert.match((await untrustRoot(here, root)).sentences[0]!, /does not trust .* any more/);
		assert.equal((await untrustRoot(here, root)).sentences, ['The trust store of the system did not trust it.']);
		assert.equal(readdirSync(anchors), [`other.${extension}`]);
		assert.equal(here.ran, [program, program]);
	});
}

trust('browser databases are found in the home folder and changed with certutil', async () => {
	const root = await readRoot(await storeWithRoot(), 'local');
	const here = fakeMachine({ isPrivileged: false });
	for (const folder of ['.pki/nssdb', '.mozilla/firefox/abc.default', '.mozilla/firefox/old']) {
		mkdirSync(path.join(here.home!, folder), { recursive: true });
	}
	for (const folder of ['.pki/nssdb', '.mozilla/firefox/abc.default']) {
		writeFileSync(path.join(here.home!, folder, 'cert9.db'), '');
	}
	const { sentences, failures } = await trustRoot(here, root);
	assert.equal(sentences, [`2 of 2 NSS databases of browsers: trusting \`${root.title}\` now.`]);
	assert.equal(failures, ['No supported trust store was found on this system.']);
	const added = here.ran.filter(line => line.includes(' -A '));
	assert.is(added.length, 2);
	assert.ok(added[0]!.includes(`-t C,, -n ${root.name} -i ${root.file}`));
});

trust('missing privileges, missing programs and a missing root certificate are each explained', async () => {
	const store = await storeWithRoot();
	const root = await readRoot(store, 'local');
	const user = fakeMachine({ isPrivileged: false });
	mkdirSync(path.join(user.root, LAYOUTS.Debian!.folder), { recursive: true });
	assert.match((await trustRoot(user, root)).failures[0]!, /Only root can change the trust store of the system/);
	const bare = fakeMachine({}, ['update-ca-certificates', 'certutil']);
	mkdirSync(path.join(bare.root, LAYOUTS.Debian!.folder), { recursive: true });
	mkdirSync(path.join(bare.home!, '.pki/nssdb'), { recursive: true });
	writeFileSync(path.join(bare.home!, '.pki/nssdb/cert9.db'), '');
	const { failures } = await trustRoot(bare, root);
	assert.match(failures[0]!, /Install ca-certificates/);
	assert.match(failures[1]!, /Install libnss3-tools/);
	const none = await runCommand(['trust'], { env: { SVC_TLS_STORE: path.join(store, 'none') } });
	assert.is(none.status, 1);
	assert.match(none.stderr, /^error: There is no root at `.*root\.crt`\. The server creates it/);
	const wrong = await runCommand(['untrust', '--ca', '../x'], { env: { SVC_TLS_STORE: store } });
	assert.match(wrong.stderr, /is not a valid authority ID/);
});

trust.run();
