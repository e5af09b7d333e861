/**
 * The bill of materials of the program, as CycloneDX: its npm packages, as npm itself lists them, and Node with the libraries
 * that Node contains. Also collects the texts of their licenses.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const REPOSITORY_FOLDER = path.resolve(import.meta.dirname, '../../..');

/** A component of a CycloneDX document. */
export interface Component {
	readonly type: 'application' | 'library' | 'platform';
	readonly name: string;
	readonly version: string;
	readonly purl?: string;
	readonly [field: string]: unknown;
}

/** A CycloneDX document, limited to the members that are edited here. */
interface Bill {
	serialNumber?: string;
	metadata: { timestamp?: string; component: Record<string, unknown> };
	components: Component[];
	dependencies: { ref: string; dependsOn: string[] }[];
}

/**
 * Returns npm's bill of the lock file, limited to the packages that the program depends on. npm's own `--omit dev` would also
 * leave out packages on which only development tools depend directly.
 */
function npmBill(): Bill {
	const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
	const result = spawnSync('npm', args, { cwd: REPOSITORY_FOLDER, encoding: 'utf8', maxBuffer: 1 << 26 });
	if (result.status !== 0) {
		throw new Error(`npm sbom failed; it needs npm 10 or later:\n${result.error?.message ?? result.stderr}`);
	}
	const bill = JSON.parse(result.stdout) as Bill;
	const { dependencies } = JSON.parse(readFileSync(path.join(REPOSITORY_FOLDER, 'package.json'), 'utf8')) as {
		readonly dependencies: { readonly [name: string]: string };
	};
	const neededReferences = new Set<string>();
	const addDependencies = (reference: string): void => {
		if (neededReferences.has(reference)) return;
		neededReferences.add(reference);
		for (const dependency of bill.dependencies.find(({ ref }) => ref === reference)?.dependsOn ?? [])
			addDependencies(dependency);
	};
	for (const [name, version] of Object.entries(dependencies)) addDependencies(`${name}@${version}`);
	bill.components = bill.components.filter(component => neededReferences.has(component['bom-ref'] as string));
	return bill;
}

/**
 * Returns the bill of materials as JSON. The same components always give the same bytes.
 * @param nodeHashes The SHA-256 of Node's official executable for each platform.
 * @param otherComponents Further components, such as a container image's libraries.
 */
export function billOfMaterials(
	release: string,
	nodeHashes: { readonly [platform: string]: string },
	otherComponents: readonly Component[] = [],
): string {
	const bill = npmBill();
	delete bill.serialNumber;
	delete bill.metadata.timestamp;
	const programReference = 'svc';
	bill.metadata.component = {
		'bom-ref': programReference,
		type: 'application',
		name: 'svc',
		version: release.replace(/^v/, ''),
		licenses: [{ license: { id: 'Apache-2.0' } }],
	};
	const nodeComponents = Object.entries(nodeHashes).map(
		([platform, hash]): Component => ({
			'bom-ref': `node-${platform}`,
			type: 'platform',
			name: `node-${platform}`,
			version: process.versions.node,
			purl: `pkg:npm/node-${platform}@${process.versions.node}`,
			description: "Node's official executable, which the program's executable is made of",
			hashes: [{ alg: 'SHA-256', content: hash }],
			licenses: [{ license: { id: 'MIT' } }],
			components: Object.entries(process.versions)
				.filter(([name, version]) => name !== 'node' && /^\d+\.\d/.test(version ?? ''))
				.map(([name, version]) => ({ type: 'library', name, version: version! })),
		}),
	);
	bill.components = [
		...bill.components,
		...nodeComponents,
		...otherComponents.map(other => ({ 'bom-ref': other.purl, ...other })),
	];
	const componentReferences = new Set(bill.components.map(component => component['bom-ref'] as string));
	bill.dependencies = [
		{
			ref: programReference,
			dependsOn: [
				...(bill.dependencies.find(({ ref }) => /^svc@/.test(ref))?.dependsOn ?? []),
				...Object.keys(nodeHashes).map(platform => `node-${platform}`),
			],
		},
		...bill.dependencies.filter(({ ref }) => componentReferences.has(ref)),
	].map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(other => componentReferences.has(other)) }));
	return `${JSON.stringify(bill, null, '\t')}\n`;
}

/** Returns the licenses of the program, of Node and of the npm packages, one after the other. */
export function collectLicenses(nodeLicense: string): string {
	const separator = `\n${'='.repeat(78)}\n`;
	const texts = npmBill().components.map(({ name, version }) => {
		const folder = path.join(REPOSITORY_FOLDER, 'node_modules', name);
		const file = existsSync(folder) ? readdirSync(folder).find(entry => /^licen[cs]e/i.test(entry)) : undefined;
		const text = file === undefined ? 'See its package.' : readFileSync(path.join(folder, file), 'utf8').trim();
		return `${name} ${version}\n\n${text}\n`;
	});
	return [
		`svc\n\n${readFileSync(path.join(REPOSITORY_FOLDER, 'LICENSE'), 'utf8').trim()}\n`,
		`Node ${process.versions.node}\n\n${readFileSync(nodeLicense, 'utf8').trim()}\n`,
		...texts,
	].join(separator);
}
