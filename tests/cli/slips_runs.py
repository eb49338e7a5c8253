#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Slips with everything that reads or writes runs. Each must end with exit code 2 and one line (or with 0 and a warning) that
quotes what was given and leads on: each command and option that the line names is there, and a complete command works.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile

from harness import Folder, Tap, neap, need

need("numpy")
import numpy as np  # noqa: E402
from mistakes import NUMBERS, refused, warned  # noqa: E402

SIZES = "plan --steps 9 --state 1K --tape 1K"
TRAINED = "it is an option of 'neap train'"
SLIPS = (  # the command, and what its line has
    # train: data
    ("train --epochs 3", "DATA is missing"),
    ("train cls.h5 --out --quiet", "--out: the value (FOLDER) is missing before '--quiet'", "Pass --out FOLDER"),
    ("train cls.h5 --net -q", "--net: the value (SPEC) is missing before '-q'", "Pass --net SPEC"),
    ("predict cls data.npz --out --softmax", "--out: the value", "is missing before '--softmax'"),
    ("train cls", "'cls' is a run, not a data set", "neap train --out 'cls' --resume"),
    ("train cls/model.safetensors", "neap train --out 'cls' --resume", "--from 'cls/model.safetensors'"),
    ("train cls/run.json", "'cls/run.json' has the options of a run", "neap train --config 'cls/run.json' --out NEW"),
    ("train data.npz --test ev.h5", "--test 'ev.h5' was encoded from events", "'data.npz' contains real numbers"),
    ("train ev.h5 --test data.npz", "--test 'data.npz' contains real numbers", "'ev.h5' was encoded from events"),
    ("train text:t.txt --test data.npz", "--test 'data.npz' contains real numbers", "'text:t.txt' is a text"),
    ("train data.npz --test numbers.npz", "--test 'numbers.npz' has numbers per sample", "'data.npz' has one class per sample"),
    ("train data.npz --test bare.npz", "--test 'bare.npz' has no targets", "remove --test"),
    ("train data.npz --test wide.npz", "'wide.npz' has 3 features, but 'data.npz' has 2"),
    ("train data.npz --shift 2", "rows of numbers per step. Remove them"),
    ("train ev.h5 --encode delta", "already are spikes. Remove --encode"),
    ("train ev.h5 --holdout bob", "--holdout bob", "encode --speaker", "--validation"),
    ("train text:steps=x:t.txt", "'text:steps=x:t.txt' is not valid", "text:steps=N:FILE"),
    ("train randman:unit=3", "unknown key 'unit'", "units"),
    # train: the run and what it continues
    ("train data.npz --out notes", "'notes' already exists, and has other files than a run", "--out"),
    ("train data.npz --out cls", "'cls' already exists", "--resume"),
    ("train data.npz --out data.npz", "--out: 'data.npz' is a file, but a run is a folder"),
    ("train --resume --out cls/model.safetensors", "--out: 'cls/model.safetensors' is a file", "Pass the folder: --out 'cls'"),
    ("train --resume --out data.npz", "--out: 'data.npz' is a file, but a run is a folder"),
    ("train data.npz --config cls/metrics.csv", "'cls/metrics.csv' is not a JSON file of options", "--config 'cls/run.json'"),
    ("train data.npz --config test.npz", "'test.npz' is not a JSON file of options", "--config 'RUN/run.json'"),
    ("train data.npz --out /proc/x", "--out: cannot create folder '/proc/x'", "Choose another folder"),
    ("train --resume --out nowhere", "no run in 'nowhere'", "without --resume"),
    ("train three.npz --resume --out cls", "other data ('data.npz'), not 'three.npz'", "neap train 'data.npz' --resume --out 'cls'"),
    ("train gone.npz --resume --out cls", "there is no 'gone.npz'", "neap train DATA --resume --out 'cls'"),
    ("train --resume --out tested", "there is no 'moved.npz'", "neap train --test DATA --resume --out 'tested'"),
    ("train --resume --out lost --epochs 5", "the snapshot 'lost/last.safetensors' is missing", "would replace 'lost/model.safetensors', the model of 2 epochs", "neap train 'data.npz' --from 'lost' --out NEW"),
    ("train --resume --out cls --epochs 1", "started with --epochs 2, not 1; epochs done so far: 2", "remove --epochs"),
    ("train --resume --out cls --lr 3", "--lr 0.004, not 3", "start a new run: neap train 'data.npz' --from 'cls' --lr 3 --out NEW"),
    ("train --resume --out tested2 --tau 5ms --lr 3", "neap train 'data.npz' --test 'test.npz' --from 'tested2' --tau 0.005s --lr 3 --out NEW"),
    ("predict nowhere notes data.npz", "cannot read 'nowhere'"),
    ("train --resume --out cls --config cls/run.json", "--config cannot be combined with --resume"),
    ("train data.npz --fresh-readout", "--fresh-readout requires --from"),
    ("train data.npz --from cls --net lstm:8,li", "--net 'lstm:8,li' does not fit", "--from 'cls'", "Remove --net", "--net gru:4,li"),
    ("train data.npz --from wide.npz", "wide.npz: it is not a safetensors file, but an archive such as .npz", "the folder of a run"),
    ("train data.npz --from net.pth", "'net.pth' is a file of PyTorch, not a safetensors file", "torch.load('net.pth', map_location='cpu')", "given.safetensors"),
    ("eval net.pth data.npz", "'net.pth' is a file of PyTorch", "docs/weights.md"),
    ("train data.npz --from CLS", "cannot read 'CLS'", "Did you mean 'cls'?"),
    ("train data.npz --from cls/last", "Did you mean 'cls/last.safetensors'?"),
    ("train data.npz --from notes", "'notes' is not the folder of a run", "the --out of 'neap train'"),
    ("train --out young --resume --lr 0.1", "cannot resume 'young'", "or start a new run: neap train 'data.npz'"),
    ("train three.npz --from cls", "three.npz has 3 classes", "--fresh-readout"),
    ("train cls data.npz", "'cls' is a run, but train takes one data set", "neap train 'data.npz' --from 'cls' --out NEW"),
    ("train data.npz cls", "'cls' is a run, but train takes one data set", "neap train 'data.npz' --from 'cls' --out NEW"),
    ("train data.npz --from cls --encode delta", "converts the numbers of 'data.npz' into spikes, but --from 'cls' was trained on numbers", "Remove --encode"),
    ("train data.npz --from coded --encode none", "--encode none leaves the numbers of 'data.npz' as they are, but --from 'coded'", "Remove --encode"),
    ("train wide.npz --from cls --fresh-readout", "'wide.npz' has 3 features, but the model was trained on 2"),
    ("train ev.h5 --from cls --fresh-readout", "was encoded from events of a sensor, but the model was trained on real numbers"),
    ("train data.npz --from cls --freeze layer7", "no 'layer7'", "layer0"),
    # train: values
    ("train data.npz --net lif:64 lif:64 li", "unexpected argument 'lif:64'", "separate the layers by commas", "--net lif:64,li"),
    ("train data.npz --encode delta,threshold=0.5", "has no colon before its keys", "Did you mean delta:threshold=0.5?"),
    ("train data.npz --net gru:64:li", "'gru:64:li' has the cell 'li' behind a colon", "layers are separated by commas. Write gru:64,li"),
    ("train data.npz --lr 1,e-3", "--lr: '1,e-3' is not a number, such as"),
    ("train data.npz --lr 4ms", "--lr: '4ms' is not a number: it is written without a unit, such as 0.004"),
    ("train data.npz --lr 0,004", "--lr: '0,004' is not a number", "Did you mean 0.004?"),
    ("train data.npz --max-steps 50ms", "--max-steps: '50ms' is not a whole number", "Did you mean 50?"),
    ("train data.npz --shift 2px", "--shift: '2px' is not a whole number between 0 and 65535", "Did you mean 2?"),
    ("train data.npz --net lif:8:tau=5ms..9ms:beta=0.9,li", "lif has 'tau' and 'beta', which set the same parameter", "Remove one"),
    ("train data.npz --net cubalif:8:alpha=0.9:tau_syn=5ms,li", "cubalif has 'alpha' and 'tau_syn', which set the same parameter", "Remove one"),
    ("train data.npz --net lif:8:scale=1:scale=2,li", "lif has 'scale' and 'scale', which set the same parameter", "Remove one"),
    ("train data.npz --net 128", "'128' is a size without a cell", "such as lif:128,li"),
    ("train data.npz --net 128r,li", "'128r' is a size without a cell", "such as lif:128r,li"),
    ("train data.npz --net cnn:8,li", "unknown cell 'cnn'", "lif:conv=3:channels=8,li"),
    ("train data.npz --net conv2d:8,li", "unknown cell 'conv2d'", "lif:conv=3:channels=8,li"),
    ("train data.npz --net lif:8,maxpool:2,li", "unknown cell 'maxpool'", "lif:64:pool=2,li"),
    ("train data.npz --net gru:8,dropout,li", "unknown cell 'dropout'", "--dropout P"),
    ("train data.npz --net gru:8,linear", "unknown cell 'linear'", "did you mean 'li'?"),
    ("train data.npz --memory 64 MB", "unexpected argument 'MB'. A value and its unit are one word", "such as 64M"),
    ("train data.npz --cpu 2", "unknown option '--cpu'; use '--threads'"),
    ("train data.npz --threads all", "--threads: 'all' is not a whole number. 0 uses one per processor"),
    ("train data.npz --net snn", "unknown cell 'snn'", "did you mean 'lif'?"),
    ("train data.npz --net SNN:64,li", "unknown cell 'SNN'", "did you mean 'lif'?"),
    ("train data.npz --strategy all", "--strategy: 'all' is not a name", "pass auto"),
    ("train data.npz --net lstm 128", "unexpected argument '128'", "--net lstm:128,li"),
    ("train data.npz --net lstm128,li", "unknown cell 'lstm128'", "did you mean 'lstm:128'?"),
    ("train data.npz cls/metrics.csv", "unexpected argument 'cls/metrics.csv'", "--labels 'cls/metrics.csv' --out FILE.h5"),
    ("train data.npz --resume", "there is no run in 'neap-run'", "without --resume", "to continue a run elsewhere, pass --out FOLDER"),
    ("train --text t.txt --steps 64", "unknown option '--steps'", "text:steps=64:FILE"),
    ("predict ran cams/a/0.npz --sensor 8x8", "unknown option '--sensor'", "belongs to 'neap encode'", "Remove it"),
    ("finetune cls data.npz", "unknown command", "neap train 'data.npz' --from 'cls' --out NEW"),
    ("infer cls data.npz", "unknown command", "neap predict 'cls' 'data.npz'"),
    ("learn data.npz", "unknown command", "neap train 'data.npz' --out NEW"),
    ("continue cls", "unknown command", "neap train --out 'cls' --resume"),
    ("train data.npz --checkpoint 10", "unknown option '--checkpoint'", "'--snapshot TIME'", "'--checkpoints 10'"),
    ("train data.npz --checkpoint cls", "unknown option '--checkpoint'", "use '--from'"),
    ("train data.npz -e 5", "unknown option '-e'", "use '--epochs'"),
    ("train data.npz -b 64", "unknown option '-b'", "use '--batch'"),
    ("train data.npz -l 0.01", "unknown option '-l'", "use '--lr'"),
    ("train data.npz -n 5", "unknown option '-n'", "'--net'", "'--epochs'"),
    ("train data.npz --config settings.json", "there is no file 'settings.json'", "Pass the run.json of a run", "write a JSON file of options"),
    ("plot cl", "'cl' is not the folder of a run", "such as 'cls'"),
    ("cams", "unknown command", "neap encode 'cams' --out FILE.h5"),
    ("data.npz", "unknown command", "neap train 'data.npz'"),
    ("train data.npz --save-every 5", "unknown option '--save-every'; use '--snapshot'"),
    ("train data.npz --memory lots", "--memory: 'lots' is not a size, such as 16M"),
    ("train data.npz --memory 1K", "1024 bytes is too small", "Use at least"),
    ("train data.npz --stretch 0.9-1.1", "--stretch: '0.9-1.1' is not a range such as 0.9:1.1"),
    ("train data.npz --jitter 2", "--jitter: '2' has no unit. Did you mean 2ms"),
    ("train data.npz --gain -1", "--gain: '-1' is out of range", "between 0 and"),
    ("train data.npz --slow /nowhere", "'/nowhere' as a directory for slow memory", "Create it (mkdir)"),
    ("train data.npz --dt 1h", "--dt: '1h' is out of range", "between 1us and 10s"),
    ("train data.npz --clip none", "--clip: 'none' is not a number. 0 turns it off"),
    ("train data.npz --warmup 5ms", "--warmup: '5ms' is not a whole number. It counts updates"),
    ("train data.npz --tier disk", "unknown option '--tier'; use '--slow'"),
    ("train data.npz --hlep", "unknown option '--hlep'; did you mean '--help'?"),
    # eval and predict
    ("eval --from cls", "DATA is missing", "neap eval --from 'cls' DATA"),
    ("eval cls data.npz test.npz", "unexpected argument 'test.npz'", "neap eval 'cls' 'test.npz'"),
    ("eval cls data.npz --epochs 3", "'--epochs'", TRAINED),
    ("eval cls data.npz --memory 4M", "'--memory'", "Remove it; --batch"),
    ("eval cls data.npz --sample 3", "'--sample'", "an option of 'neap predict'"),
    ("eval cls data.npz -o a.csv", "unknown option '-o'", "neap predict RUN DATA --out FILE.csv"),
    ("eval cls data.npz --json a.json", "unexpected argument 'a.json'", "goes to standard output"),
    ("eval cls data.npz --threshold 0.5", "the class with the highest score is the answer"),
    ("eval cls data.npz --dt 1ms", "'cls' specifies its own dt", "Remove --dt"),
    ("eval cls bare.npz", "'bare.npz' has no labels", "Use 'neap predict'"),
    ("eval cls/metrics.csv data.npz", "cls/metrics.csv: it is not a safetensors file", "the folder of a run"),
    ("eval cls/run.json data.npz", "cls/run.json: it is a JSON file", "the folder of a run"),
    ("predict clss data.npz", "cannot read 'clss'", "Did you mean 'cls'?"),
    ("eval nothing data.npz", "cannot read 'nothing'", "Check the path"),
    ("predict cls data.npz --lr 3", "'--lr'", TRAINED),
    ("predict cls data.npz --out a.txt", "--out: 'a.txt' must end in .csv or .npz"),
    ("predict cls data.npz --out no/a.csv", "--out: cannot write 'no/a.csv'", "Create the folder"),
    ("predict cls data.npz --out data.npz", "--out: 'data.npz' would replace the data"),
    ("predict cls data.npz --out notes", "--out: 'notes' is a folder", "'notes/NAME'"),
    ("predict cls data.npz --sample 99", "has no sample 99; its 20 samples are counted from 0"),
    ("predict cls data.npz --sample 0,1", "--sample: '0,1' is not a whole number", "Pass one index", "leave out --sample"),
    ("predict cls data.npz --window 10ms", "--window requires --every"),
    ("predict cls data.npz --layer layer0", "--layer", "--spikes or --membranes"),
    ("predict num numbers.npz --softmax", "'num' answers with numbers", "remove --softmax"),
    ("predict cls data.npz --plot a.jpg", "--plot: 'a.jpg' has an unknown ending; use .svg or .png"),
    # plot and export
    ("plot cls/model.safetensors", "'cls/model.safetensors' is a model", "neap plot 'cls'"),
    ("plot cls --metric acc", "loss, accuracy and rates are all drawn"),
    ("plot --run cls", "unknown option '--run'; the run is an argument: neap plot RUN"),
    ("plot cls --loss", "loss, accuracy and rates are all drawn"),
    ("export --run cls --nir a.nir", "unknown option '--run'; the run is the first argument"),
    ("plot cls --show", "the figure is written to a file"),
    ("plot notes", "'notes' is not the folder of a run", "the --out of 'neap train'"),
    ("plot cls nowhere", "'nowhere' is not the folder of a run"),
    ("plot cls --out cls", "--out: 'cls' has an unknown ending; use .svg or .png"),
    ("export cls", "--nir FILE is missing"),
    ("export cls -o a.nir", "unknown option '-o'; use '--nir', with the file to write"),
    ("export cls --nir a.nir --quantize", "the weights are written as they are", "Leave it out"),
    ("export cls --nir a.onnx", "'a.onnx' has the extension of another format", "Use .nir"),
    ("export cls --onnx a.onnx", "'--onnx'", "--nir FILE"),
    ("export cls --nir a.nir", "layer0 is gru, which NIR cannot express"),
    ("export ran --nir no/a.nir --metadata", "--nir: cannot write 'no/a.nir'", "Create the folder"),
    ("export ev.h5 --nir a.nir", "'ev.h5' is not a graph in NIR", "the folder of a run"),
    ("train data.npz --resume cls", "'cls' is a run, not a data set", "neap train --out 'cls' --resume"),
    ("train data.npz --resume=cls/last.safetensors", "is a run, not a data set", "neap train --out 'cls' --resume"),
    ("train data.npz --resume=yes", "--resume takes no value, but 'yes' is given", "Pass only --resume"),
    # compare, calibrate, plan, study, bench
    ("compare data.npz --epochs 3", "'--epochs'", TRAINED),
    ("compare data.npz --strategy bptt,revolve", "'bptt,revolve' is a list", "--strategy bptt --strategy"),
    ("compare cls coded", "'cls' and 'coded' are runs", "neap plot 'cls' 'coded'"),
    ("compare cls data.npz", "'cls' is a run, but compare takes a data set", "neap compare 'data.npz' --net SPEC"),
    ("compare data.npz --strategy all", "'all' is not a name", "Leave out --strategy to run all"),
    ("calibrate cls", "'cls' is a run, not a data set", "neap calibrate DATA --net SPEC"),
    ("plan data.npz", "unexpected argument 'data.npz'", "neap calibrate 'data.npz' --out chain.json", "neap plan --chain chain.json --memory 64M"),
    (SIZES, "--memory is missing"),
    (SIZES + " --memory 9K --tier /tmp", "'/tmp' is a path", "neap calibrate DATA --slow '/tmp' --out chain.json"),
    (SIZES + " --memory 9K --tier ssd", "'ssd' has no rates", "--tier ssd:write=500M,read=2G"),
    (SIZES + " --memory 9K --strategy best", "--strategy: 'best' is not one of", "revolve"),
    (SIZES + " --memory 9K --save no/x.plan", "--save: cannot write 'no/x.plan'", "Create the folder"),
    ("study nothing --out s", "'nothing' is not one of", "howfar"),
    ("bench", "NAME is missing", "such as neap bench kernels"),
    ("plot", "RUN... is missing: neap plot RUN...; 'neap plot --help' has examples"),
    ("plan cls", "plan needs sizes, not a run", "neap calibrate DATA --net SPEC --out chain.json", "neap plan --chain chain.json --memory 64M"),
    ("plan --memory 1M", "--steps is missing", "such as --steps 1000 --state 64K --tape 16K --memory 64M"),
    ("plan --steps 1000", "--memory is missing", "such as --memory 64M --state 64K --tape 16K"),
    ("bench nothing", "'nothing' is not one of", "planner"),
    ("version", "neap --version"),
    ("run cls", "neap train DATA --out RUN", "neap predict RUN DATA"),
    ("neap train data.npz", "'neap' is typed twice"),
    ("info", "neap plot RUN"),
)
NOTES = (  # the command, and what standard error has although it succeeds
    ("eval cls data.npz", "'data.npz' is the training data of this model"),
    ("eval cls/last.safetensors copy.npz", "'copy.npz' is the training data of this model"),
    ("eval coded data.npz", "'data.npz' is the training data of this model"),
    ("eval ran ev.h5", "'ev.h5' is the training data of this model"),
    ("train far.h5 --net lif:4,li --epochs 1 --max-steps 9 --out far", "the longest sample of 'far.h5' lasts 3:", "pass it to 'neap encode', such as --time-unit 1us"),
    ("train far.h5 --net lif:4,li --epochs 1 --jitter 100s --out jitter", "--jitter 1:40 min is large for samples that last 3:"),
    ("train late.h5 --net lif:4,li --epochs 1 --max-steps 9 --out late-run", "the samples of 'late.h5' last up to 2:46:40, but have no spike in the first half", "their times do not begin at 0", "Encode the recordings once more with --from-first-event"),
    ("compare tardy.h5 --net lif:4,li --memory 4M --strategy bptt", "their times do not begin at 0", "Encode the recordings once more with --from-first-event"),
    ("train data.npz --net gru:4,li --epochs 1 --lr 1e-9 --encode delta --out unheard", "nothing was learned", "Remove --encode delta, so that the numbers are input currents, or try another kind or a larger threshold=. Otherwise: increase --epochs (now 1)"),
    ("train ev.h5 --net lif:4,li --epochs 1 --shift 100 --out shift", "by up to 100 of 128 channels, so most of them are lost", "such as --shift 6"),
    ("train ev.h5 --net lif:4,li --epochs 1 --dt 1s --out coarse", "is 1 step of --dt 1 s. Decrease --dt, such as --dt 1us"),
    ("train long.npz --net gru:4,li --epochs 1 --max-steps 5 --out cut", "--max-steps 5 cuts the samples of 'long.npz' to their first 5 of up to 60 steps"),
    ("compare long.npz --net gru:4,li --max-steps 5", "--max-steps 5 cuts the samples of 'long.npz'"),
    ("train text:steps=20:t.txt --net gru:4,li --epochs 1 --max-steps 5 --out short", "--max-steps 5 leaves out the end of each sample of 20 characters, 75% of the text", "pass text:steps=5:t.txt instead"),
    ("train padded.npz --net gru:4,li --epochs 1 --out padded", "18 of 18 samples end in rows of zeros, up to ", "python3 -c"),
    ("train data.npz --net gru:4,li --epochs 1 --memory 900T --out vast", "the memory budget of 900 TiB is more than the memory of this machine"),
    ("train text:few.txt --net gru:4,li --epochs 1 --out few", "the text has only 5 characters", "Pass a longer one"),
    ("train data.npz --net gru:4,li --epochs 1 --encode delta:threshold=99 --out still", "have no spike", "such as --encode delta:threshold=0.7"),
    ("train data.npz --net gru:4,li --epochs 1 --encode threshold:level=99 --out above", "have no spike", "such as --encode threshold:level="),
    ("train data.npz --net gru:4,li --epochs 1 --encode latency:offset=-99,clip=1 --out late", "have no spike", "such as --encode latency:gain="),
    ("predict cls large.npz", "feature 0 of 'large.npz' is about 1000 times larger than in the training data of the model"),
    ("train large.npz --from cls --epochs 1 --out larger", "is about 1000 times larger than in the training data of the model"),
    ("train data.npz --net gru:4,li --epochs 1 --test large.npz --out tests", "is about 1000 times larger than in the training data ("),
    ("train randman:classes=2,samples=40,units=9,steps=50 --net lif:8,li --epochs 1 --lr 4 --gain 1e-3 --out steep", "is silent", "Decrease --lr (now 4); if that does not help, increase --gain (now 0.001)"),
    ("train --resume --out free --epochs 2", "memory budget: ", "(as before; --memory changes it)", "in addition to the memory budget, the process uses at most"),
)
PLACEHOLDER = r"\b[A-Z]{2,}\b|\.\.\."
WORD = r"(?: '[^']*'| --[a-z][a-z-]*| (?=[\w./]*[\d./])[\w./:-]*\w| [A-Z]{2,}[\w.]*)"
COMMANDS = rf"neap ([a-z]+)({WORD}*)"


def events(folder, name, *more):
    done = neap("encode", "cams", "--out", name, "--sensor", "8x8", *more, cwd=folder)
    assert done.returncode == 0, done.stderr


def prepare(folder):
    """data and runs"""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 5, 2))
    for name, arrays in {"data": {"x": x, "y": np.arange(20) % 2}, "test": {"x": x[:9], "y": np.arange(9) % 2}, "three": {"x": x, "y": np.arange(20) % 3},
                         "numbers": {"x": x, "y": x.mean(1)}, "wide": {"x": rng.normal(size=(20, 5, 3)), "y": np.arange(20) % 2}, "bare": {"x": x},
                         "large": {"x": 1000 * x, "y": np.arange(20) % 2}, "long": {"x": rng.normal(size=(20, 60, 2)), "y": np.arange(20) % 2}}.items():
        np.savez(os.path.join(folder, name + ".npz"), **arrays)
    with zipfile.ZipFile(os.path.join(folder, "net.pth"), "w") as out:
        out.writestr("net/data.pkl", bytes(300))
    for kind in "ab":
        os.makedirs(os.path.join(folder, "cams", kind))
        for i in range(3):
            t, at = np.sort(rng.integers(0, 200, 9)), rng.integers(0, 8, (2, 9))
            np.savez(os.path.join(folder, "cams", kind, f"{i}.npz"), t=t, x=at[0], y=at[1], p=t % 2)
            os.makedirs(os.path.join(folder, "begun-late", kind), exist_ok=True)
            np.savez(os.path.join(folder, "begun-late", kind, f"{i}.npz"), t=t + 10**10, x=at[0], y=at[1], p=t % 2)
            os.makedirs(os.path.join(folder, "tardy", kind), exist_ok=True)
            np.savez(os.path.join(folder, "tardy", kind, f"{i}.npz"), t=t + 2 * 10**6, x=at[0], y=at[1], p=t % 2)
    steps = np.arange(60) < rng.integers(5, 50, 20)[:, None]
    np.savez(os.path.join(folder, "padded.npz"), x=rng.normal(size=(20, 60, 2)) * steps[..., None], y=np.arange(20) % 2)
    events(folder, "ev.h5")
    events(folder, "far.h5", "--time-unit", "1s")
    neap("encode", "tardy", "--out", "tardy.h5", "--sensor", "8x8", cwd=folder)
    done = neap("encode", "begun-late", "--out", "late.h5", "--sensor", "8x8", cwd=folder)
    assert "(6 of 6 recordings begin so late)" in done.stderr, done.stderr
    shutil.copy(os.path.join(folder, "data.npz"), os.path.join(folder, "copy.npz"))
    shutil.copy(os.path.join(folder, "test.npz"), os.path.join(folder, "moved.npz"))
    with open(os.path.join(folder, "t.txt"), "w", encoding="utf-8") as file:
        file.write("abc, abc. " * 30)
    with open(os.path.join(folder, "few.txt"), "w", encoding="utf-8") as file:
        file.write("hello")
    os.mkdir(os.path.join(folder, "notes"))
    shutil.copy(os.path.join(folder, "t.txt"), os.path.join(folder, "notes"))
    gru, lif = [*NUMBERS[:-3], "--net", "gru:4,li", "--out"], [*NUMBERS[:-3], "--net", "lif:4,li", "--out"]
    for data, *options in (("data.npz", *gru, "cls", "--epochs", "2"), ("numbers.npz", *gru, "num"), ("data.npz", *gru, "tested", "--test", "moved.npz"),
                           ("data.npz", *gru, "tested2", "--test", "test.npz"),
                           ("ev.h5", *lif, "ran"), ("data.npz", *lif, "coded", "--encode", "delta"),
                           ("data.npz", "--epochs", "1", "--threads", "1", "--net", "gru:4,li", "--out", "free")):
        warned(folder, "train", data, *options)
    os.remove(os.path.join(folder, "moved.npz"))
    shutil.copytree(os.path.join(folder, "cls"), os.path.join(folder, "lost"))
    os.remove(os.path.join(folder, "lost", "last.safetensors"))
    shutil.copytree(os.path.join(folder, "cls"), os.path.join(folder, "young"))  # as one interrupted in its first epoch
    os.remove(os.path.join(folder, "young", "model.safetensors"))


def options_of(command, known):
    """The options of a command, as completions list them."""
    if command not in known:
        listed = neap(command, "--list-options").stdout
        known[command] = {"--" + line.split()[0].lstrip("-") for line in listed.splitlines() if line.split()} | {"--help"}
    return known[command]


def leads_on(folder, line, command, known):
    """None; or what the line names that is not there, or a complete command that fails."""
    commands = known.setdefault("all", re.findall(r"^  (\w+) ", neap("--help").stdout, re.M))
    named = re.findall(COMMANDS, line.split(": ", 1)[1])
    allowed = {"--version"}.union(*(options_of(name, known) for name in {command, *(name for name, _ in named)} if name in commands))
    given = re.search(r"unknown option '(--[\w-]+)'", line)
    missing = [word for word in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line) if word not in allowed and not (given and word == given.group(1))]
    if missing or any(name not in commands for name, _ in named):
        return f"not there: {missing} {named}: {line}"
    for name, rest in named:
        words = shlex.split(rest)
        if "'" not in rest and "." not in rest or re.search(PLACEHOLDER, rest):  # with a file of its own it is complete
            continue
        done = neap(name, *words, cwd=folder)
        if done.returncode:
            return f"neap {name}{rest}: {done.stderr}"
    return None


def slip(folder, args, needles, known):
    """refused, or what is wrong about the line"""
    args = shlex.split(args)
    wrong = refused(folder, args, *needles)
    return wrong or leads_on(folder, neap(*args, cwd=folder).stderr, args[0], known)


def note(folder, args, needles):
    done = neap(*shlex.split(args), cwd=folder)
    return None if done.returncode == 0 and all(needle in done.stderr for needle in needles) else done.stderr


def silent_about_others(folder):
    """No note about other data than the training data, nor about features that are zero in a sample by chance."""
    x = (np.random.default_rng(2).random((60, 5, 8)) < 0.02) * 1.0
    x[..., 4:] += 1 + np.random.default_rng(3).random((60, 5, 4))
    for name, rows in ("rare", x), ("rare-one", x[:1]):
        np.savez(os.path.join(folder, name + ".npz"), x=rows, y=np.arange(len(rows)) % 2)
    neap("train", "rare.npz", *NUMBERS[:-3], "--net", "gru:4,li", "--out", "rare", cwd=folder)
    return neap("predict", "rare", "rare-one.npz", cwd=folder).stderr or neap("eval", "cls", "test.npz", cwd=folder).stderr or neap("eval", "cls", "data.npz", "-q", cwd=folder).stderr or None


def keeps_model(folder):
    """A run whose snapshot is lost keeps its files; one that ended before it had a model starts again, with a warning."""
    run = os.path.join(folder, "lost")
    files = {name: open(os.path.join(run, name), "rb").read() for name in os.listdir(run)}
    args = "train", "--resume", "--out", "lost", "--epochs", "5", "-q"
    first = neap(*args, cwd=folder)
    if first.returncode != 2 or files != {name: open(os.path.join(run, name), "rb").read() for name in os.listdir(run)}:
        return first.stderr
    os.remove(os.path.join(run, "model.safetensors"))
    again = neap(*args, cwd=folder)
    return None if again.returncode == 0 and "warning: no snapshot in 'lost': starting from the beginning" in again.stderr else again.stderr


def unpadded(folder):
    """The command of the warning about padding makes a file with the lengths, about which there is no such warning."""
    line = neap("train", "padded.npz", *NUMBERS[:-3], "--net", "gru:4,li", "--out", "pads", cwd=folder).stderr
    done = subprocess.run(["sh", "-c", re.search("python3 -c .*", line).group()], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]})
    if done.returncode:
        return done.stderr
    again = neap("train", "neap.npz", *NUMBERS[:-3], "--net", "gru:4,li", "--out", "lengths", cwd=folder)
    return None if again.returncode == 0 and "zeros" not in again.stderr else again.stderr


def no_plan_fits(folder):
    """A budget without a plan ends with exit code 2, and a line whose budget has one."""
    for strategy in [], ["--strategy", "revolve"]:
        done = neap(*SIZES.split(), "--memory", "1K", *strategy, cwd=folder)
        found = re.search(r"there is no plan for --memory 1024. Pass at least --memory (\d+)\n$", done.stderr)
        if done.returncode != 2 or not found:
            return f"{done.returncode}: {done.stderr}"
        done = neap(*SIZES.split(), "--memory", found.group(1), *strategy, cwd=folder)
        if done.returncode or done.stderr:
            return done.stderr
    return None


def other_chains(folder):
    """Strategies for other chains say which, in the table and alone."""
    table = neap(*SIZES.split(), "--memory", "9K", cwd=folder).stdout
    for name, reason in ("pofo", "needs steps that differ, but these are all equal; --chain FILE can list them"), \
            ("join", "needs two chains that end in one loss; this is one chain: --steps 500,300 is two"):
        done = neap(*SIZES.split(), "--memory", "9K", "--strategy", name, cwd=folder)
        if f"{name:13} {reason}\n" not in table or done.returncode != 2 or reason not in done.stderr:
            return table + done.stderr
    alone = neap(*SIZES.split(), "--memory", "9K", "--strategy", "revolve", cwd=folder).stdout
    timed = neap(*SIZES.split(), "--memory", "9K", "--backward", "2s", cwd=folder).stdout
    table = neap(*SIZES.split(), "--memory", "9K", cwd=folder).stdout
    compared = neap("compare", "data.npz", "--net", "gru:4,li", "--memory", "1M", cwd=folder).stdout
    wanted = (("replay        needs a log: add --log BYTES", table), ("times: of steps that take 1 s forward and 2 s backward, the defaults", table), ("the defaults; 'neap calibrate DATA'", alone),
              ("replay        needs a log of spikes, which only plain layers", compared), ("remote        needs a slow tier: add --slow DIR", compared))
    if any(words not in said for words, said in wanted) or "times: of steps" in timed:
        return table + alone + timed + compared
    return neap("plan", "--steps", "500,300", "--slots", "8", "--strategy", "join", cwd=folder).stderr or None


def dense_cells(folder):
    """compare prints spikes of cells that spike, and sizes of tapes that differ."""
    heads = [neap("compare", "data.npz", "--net", net, "--memory", "1M", "--strategy", "bptt", cwd=folder).stdout.splitlines()[:2] for net in ("gru:4,li", "lif:4,li")]
    said = [[word in " ".join(head) for word in ("spikes", "support", "at most 0 B")] for head in heads]
    return None if said == [[False] * 3, [True, True, False]] else str(heads)


def slow_budget(folder):
    """A budget whose plan is ten times slower than storing everything has a warning with a budget that is not."""
    np.savez(os.path.join(folder, "deep.npz"), x=np.random.default_rng(4).normal(size=(2, 400, 2)), y=np.arange(2))
    args = ["train", "deep.npz", "--net", "gru:4,li", "--epochs", "1", "--batch", "1", "--validation", "0", "--strategy", "revolve", "--memory"]
    least = re.search(r"Use at least (\d+) bytes", neap(*args, "1", cwd=folder).stderr).group(1)
    found = re.search(r"takes (\d+) times as long as with all tapes stored. With --memory (\d+K) it takes ([\d.]+) times as long", neap(*args, least, "--out", "slow", cwd=folder).stderr)
    if not found or int(found.group(1)) < 10 or float(found.group(3)) >= 10:
        return str(found)
    line = neap(*args, found.group(2), "--out", "faster", cwd=folder).stderr
    return line if "times as long" in line else None


def long_run(folder):
    """A run of hours prints its duration before its first epoch, also with -q."""
    for data, advice, lines in (("data.npz", "lower --epochs, cut samples with --max-steps, use more --threads than 1", 2),
                                ("late.h5", "encode the recordings with --from-first-event, lower --epochs, use a larger --dt", 3)):
        args = ["train", data, "--net", "lif:64,li", "--batch", "1", "--epochs", "1000000000", "--threads", "1", "--memory", "400M", "-q", "--out", "endless-" + data]
        with subprocess.Popen([os.environ["NEAP_BIN"], *args], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
            said = [process.stderr.readline() for _ in range(lines)]
            process.kill()
        found = [line for line in said if line.startswith("warning: 1000000000 epochs take up to about ")]
        if not found or advice not in found[0]:
            return str(said)
    return None


def small_validation(folder):
    """The warning about few validation samples proposes what the run can do: --validation-least, and for a resumed one a new run."""
    line = neap("train", "--resume", "--out", "free", "--epochs", "3", "-q", cwd=folder).stderr
    command = re.search(r"neap train --config 'free/run.json' --validation-least \d+ --out NEW", line)
    if not command or "or pass --validation" in line:
        return line
    again = neap(*shlex.split(command.group().replace("NEW", "chooses"))[1:], "-q", cwd=folder)
    return None if again.returncode == 0 and "too few" not in again.stderr else again.stderr


def main():
    known = {}
    with Tap() as tap, Folder() as folder:
        tap.run("data and runs", prepare, folder)
        for args, *needles in SLIPS:
            tap.run(args, slip, folder, args, needles, known)
        for args, *needles in NOTES:
            tap.run(args, note, folder, args, needles)
        tap.run("lengths of padded samples", unpadded, folder)
        tap.run("a budget without a plan", no_plan_fits, folder)
        tap.run("a budget with a slow plan", slow_budget, folder)
        tap.run(dense_cells.__doc__, dense_cells, folder)
        tap.run(other_chains.__doc__, other_chains, folder)
        tap.run(long_run.__doc__, long_run, folder)
        tap.run(small_validation.__doc__, small_validation, folder)
        tap.run("a lost snapshot", keeps_model, folder)
        tap.run("eval of other data", silent_about_others, folder)


if __name__ == "__main__":
    sys.exit(main())
