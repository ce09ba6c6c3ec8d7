//! What would run the models: the processor's instructions that the fast kernels use, and other devices.

use super::finding::Finding;
use super::machine_files::MachineFiles;

/// What the fast kernels of x86-64 use.
const FAST: [&str; 3] = ["avx2", "fma", "f16c"];

/// The findings about devices.
pub fn check(machine: &MachineFiles) -> Vec<Finding> {
    vec![instructions(machine), Finding::ok("cuda", "not part of this version")]
}

fn instructions(machine: &MachineFiles) -> Finding {
    let what = "cpu kernels";
    let Some(flags) = machine.field("proc/cpuinfo", "flags") else {
        let advice = "models run, but several times slower than on an x86-64 processor with AVX2, FMA and F16C";
        return Finding::warn(what, "portable", advice);
    };
    let missing: Vec<_> =
        FAST.into_iter().filter(|wanted| !flags.split_whitespace().any(|flag| flag == *wanted)).collect();
    if missing.is_empty() {
        return Finding::ok(what, FAST.join(" "));
    }
    let advice = "models run, but several times slower: a virtual machine may hide what its host has";
    Finding::warn(what, format_args!("portable, {} missing", missing.join(" ")), advice)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine_files::folder_with;
    use super::*;

    #[test]
    fn the_fast_kernels_need_all_three_extensions() {
        let (_folder, machine) = folder_with(&[("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu fma avx avx2 f16c\n")]);
        assert_eq!(check(&machine)[0], Finding::ok("cpu kernels", "avx2 fma f16c"));
        let (_folder, machine) = folder_with(&[("proc/cpuinfo", "flags\t\t: fpu fma avx avx2\n")]);
        let finding = &check(&machine)[0];
        assert_eq!((finding.level, finding.value.as_str()), (Level::Warn, "portable, f16c missing"));
    }

    #[test]
    fn other_processors_use_the_portable_kernels() {
        let (_folder, machine) = folder_with(&[("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\n")]);
        assert_eq!(check(&machine)[0].value, "portable");
    }
}
