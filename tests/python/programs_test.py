"""emulate, locality and schedule on NumPy's arrays."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy

from support import BUILD, ROOT, python

os.environ["DEMARC_PROGRAM"] = str(BUILD / "demarc")
import demarc

# scale<float>(float*, float*, int): out[i] = in[i] * gain + offset[0] for i below n.
SCALE = """
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .f32 gain;
.const .align 4 .b8 offset[8];
.visible .entry _Z5scaleIfEvPT_S1_i(.param .u64 in, .param .u64 out, .param .u32 n)
{
.reg .b32 %r<3>; .reg .b64 %rd<6>; .reg .f32 %f<5>; .reg .pred %p<2>;
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
ld.param.u32 %r2, [n];
mov.u32 %r1, %tid.x;
setp.ge.u32 %p1, %r1, %r2;
@%p1 bra END;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
ld.global.f32 %f1, [%rd4];
ld.const.f32 %f2, [gain];
ld.const.f32 %f3, [offset];
fma.rn.f32 %f4, %f1, %f2, %f3;
st.global.f32 [%rd5], %f4;
END: ret;
}
"""
# Each block writes its number in the cluster to its place.
RANKS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 out) .explicitcluster
{
.reg .b32 %r<3>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %cluster_ctarank;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r2;
ret;
}
"""
LAUNCH = """{"schema": "demarc.launch/1", "ptx": "scale.ptx", "parameters": {"n": 4},
 "buffers": [{"name": "in", "bytes": "4*n", "element": "f32", "fill": "iota"},
             {"name": "out", "bytes": "4*n", "element": "f32", "output": true}],
 "launches": [{"kernel": "scale", "grid": 1, "block": "n", "args": ["buf:in", "buf:out", "i32:n"]}]}"""
GAIN = {"gain": numpy.float32(2.5), "offset": numpy.array([1, 0], dtype=numpy.float32)}


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.ptx = cls.folder / "scale.ptx"
        cls.ptx.write_text(SCALE)
        (cls.folder / "l.json").write_text(LAUNCH)

    def scale(self, array, count=6, **more):
        arguments = [array, numpy.zeros_like(array), numpy.int32(count)]
        return demarc.emulate(self.ptx, "scale<float>", arguments, **({"block": 8, "variables": GAIN} | more))

    def refusal(self, call, *arguments, **more):
        with self.assertRaises(demarc.Error) as raised:
            call(*arguments, **more)
        return raised.exception

    def test_arrays_come_back_as_the_kernel_left_them_with_their_shapes(self):
        given = numpy.array([[0, 1, 2], [3, 4, 5]], dtype=numpy.float32)
        ran = self.scale(given)
        self.assertEqual(ran.arrays[0].tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(ran.arrays[1].tolist(), [[1, 3.5, 6], [8.5, 11, 13.5]])
        self.assertEqual((given.tolist(), ran.arrays[1].dtype), ([[0, 1, 2], [3, 4, 5]], given.dtype))
        self.assertEqual((ran.kernels[0].blocks, ran.findings, ran.warnings, ran.check), (1, (), (), "none"))

    def test_constants_that_nobody_set_are_warnings(self):
        ran = self.scale(numpy.arange(6, dtype=numpy.float32), variables={"gain": GAIN["gain"]})
        self.assertEqual(len(ran.warnings), 1)
        self.assertIn("'offset', which has not been set", ran.warnings[0])

    def test_findings_are_part_of_the_result(self):
        ran = self.scale(numpy.arange(4, dtype=numpy.float32))
        self.assertEqual([(one.kind, one.thread) for one in ran.findings], [("out-of-bounds access", (4, 0, 0))] * 2)

    def test_buffers_of_a_launch_file_are_given_by_name(self):
        ran = demarc.emulate(launch=self.folder / "l.json", parameters={"n": 3}, variables=GAIN, outputs=["out"])
        self.assertEqual(ran.outputs["out"].tolist(), [1, 3.5, 6])
        self.assertEqual(ran.arrays, ())

    def test_numbers_have_the_types_that_they_have_in_numpy_and_structures_are_bytes(self):
        idle = self.folder / "idle.ptx"
        idle.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u8 a, .param .f64 b, "
                        ".param .align 4 .b8 c[3], .param .u64 d) { ret; }\n")
        flags = numpy.array([True, False], dtype=numpy.bool_)
        ran = demarc.emulate(idle, arguments=[numpy.uint8(255), numpy.float64(float("nan")), b"\x00\x01\xff", flags])
        self.assertEqual(ran.arrays[0].tolist(), [True, False])
        self.assertIn("argument 1 of kernel 'k' has 8 bytes",
                      str(self.refusal(demarc.emulate, idle, "", [numpy.int64(1), numpy.float64(0), b"\x00\x01\xff", flags])))

    def test_the_launch_says_how_large_clusters_are(self):
        ranks = self.folder / "ranks.ptx"
        ranks.write_text(RANKS)
        words = numpy.zeros(8, dtype=numpy.uint32)
        for cluster, expected in ((2, [0, 1] * 4), ((4, 1, 1), [0, 1, 2, 3] * 2)):
            ran = demarc.emulate(ranks, arguments=[words], grid=8, cluster=cluster)
            self.assertEqual(ran.arrays[0].tolist(), expected)
        self.assertIn("clusters of 3 x 1 x 1 blocks, which do not divide a grid of 8",
                      str(self.refusal(demarc.emulate, ranks, "", [words], grid=8, cluster=3)))
        self.assertEqual(demarc.locality(ranks, arguments=[words], grid=8, cluster=2).kernel, "ranks")
        self.assertIn("cluster of 32x1x1 blocks", str(self.refusal(demarc.locality, ranks, "", [words], grid=32, cluster=32)))

    def test_what_has_no_type_and_what_is_no_launch_is_refused(self):
        self.assertIn("argument 1: 7 has no type of its own", str(self.refusal(demarc.emulate, self.ptx, "", [7])))
        self.assertIn("booleans, integers and floats are known",
                      str(self.refusal(demarc.emulate, self.ptx, "", [numpy.complex64(1)])))
        for both in ({}, {"ptx": self.ptx, "launch": "bundled:vecadd"}):
            self.assertIn("one of the two", str(self.refusal(demarc.emulate, **both)))
        for more in ({"arguments": [b"x"]}, {"grid": 2}, {"block": (2, 2)}, {"cluster": 1}, {"shared": 4}):
            self.assertIn("says arguments, grid, block, cluster and shared itself",
                          str(self.refusal(demarc.emulate, launch="bundled:vecadd", **more)))
        self.assertIn("--scale and --param belong to launch files",
                      str(self.refusal(demarc.emulate, self.ptx, parameters={"n": 4})))
        refused = self.refusal(demarc.emulate, self.ptx, "scall")
        self.assertEqual(refused.code, 1)
        self.assertIn("there is no entry 'scall'", str(refused))

    def test_locality_gives_its_maps_as_arrays(self):
        words = numpy.zeros_like(numpy.arange(513, dtype=numpy.uint32))
        found = demarc.locality(ROOT / "examples/halo.ptx", "halo", [words, words], grid=8, block=64)
        self.assertEqual((found.kernel, found.method), ("halo", "symbolic"))
        self.assertEqual(found.between_blocks.cells.tolist(), [[i, i + 1, 1] for i in range(7)])
        self.assertEqual(found.l1_hit_rate, 0.5)
        bundled = demarc.locality(launch="bundled:vecadd", granularity="128")
        self.assertEqual(bundled.details["granularity"], "128")
        self.assertEqual(bundled.between_blocks.cells.shape, (0, 3))

    def test_schedule_gives_a_column_per_figure_of_the_kernels(self):
        config = self.folder / "x.conf"
        subprocess.run([BUILD / "demarc", "schedule", "generate", "--ticks", "500", "-o", config], check=True)
        policies = demarc.schedule(config)
        self.assertEqual([one.policy for one in policies][:2], ["rr", "rr-skip"])
        one, = demarc.schedule(config, "rr")
        kernels = one.details["kernel"]
        self.assertEqual(one.start.tolist(), [kernel["start"] for kernel in kernels])
        ended = [end for end in one.end.tolist() if end == end]
        self.assertEqual(len(ended), one.details["finished"])
        self.assertLess(len(ended), len(kernels))
        self.assertIn("none.conf", str(self.refusal(demarc.schedule, self.folder / "none.conf")))

    def test_the_package_itself_does_without_numpy(self):
        self.assertEqual(python("import demarc, sys; print('numpy' in sys.modules)"), "False\n")


if __name__ == "__main__":
    unittest.main()
